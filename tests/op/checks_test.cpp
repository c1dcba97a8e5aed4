// Every wrong call is refused at the door, with words that help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/op/cases.h"
#include "xsa/op/backend.h"
#include "xsa/op/signature.h"

namespace xsa::op::testing {
namespace {

using ::testing::HasSubstr;

Case good() { return make_case({}, 1).cast(at::kFloat); }  // B 2, H 4, K 2, T 6, S 9, D 5, Dv 3

std::string error_of(const Case& c) {
  try {
    attention(c.q, c.k, c.v, c.options);
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

at::Tensor ints(std::vector<std::int64_t> numbers, at::ScalarType type = at::kInt) {
  return at::tensor(numbers, at::kLong).to(type);
}

TEST(Checks, AcceptAGoodCall) { EXPECT_EQ(error_of(good()), "no error"); }

TEST(Checks, NameTheTensorTheExpectationAndWhatCame) {
  Case c = good();
  c.k = c.k.narrow(0, 0, 1);
  EXPECT_EQ(error_of(c),
            "xsa::attention: k: expected B = 2 in dimension 0 as in q, got [1, 2, 9, 5] Float on "
            "cpu");
}

struct Wrong {
  const char* name;
  void (*change)(Case& c);
  const char* expected;
};

const Wrong kWrong[] = {
    {"Rank", [](Case& c) { c.q = c.q[0]; }, "q: expected 4 dimensions [B, H, T, D]"},
    {"Type", [](Case& c) { c.v = c.v.to(at::kHalf); }, "v: expected the type of q, Float"},
    {"Integers",
     [](Case& c) { c.q = c.q.to(at::kInt), c.k = c.k.to(at::kInt), c.v = c.v.to(at::kInt); },
     "q: expected float32, float64, bfloat16 or float16"},
    {"Sparse", [](Case& c) { c.k = c.k.to_sparse(); }, "k: expected a strided"},
    {"Device", [](Case& c) { c.k = c.k.to(at::kMeta); }, "k: expected the device of q, cpu"},
    {"HeadDim", [](Case& c) { c.k = c.k.narrow(3, 0, 4); }, "k: expected D = 5"},
    {"ValueHeads", [](Case& c) { c.v = c.v.narrow(1, 0, 1); }, "v: expected K = 2"},
    {"ValueLength", [](Case& c) { c.v = c.v.narrow(2, 0, 8); }, "v: expected S = 9"},
    {"EmptyHead", [](Case& c) { c.q = c.q.narrow(3, 0, 0), c.k = c.k.narrow(3, 0, 0); },
     "q: expected a head dimension D of at least 1"},
    {"EmptyValue", [](Case& c) { c.v = c.v.narrow(3, 0, 0); }, "v: expected a head dimension Dv"},
    {"NoKeyHeads", [](Case& c) { c.k = c.k.narrow(1, 0, 0), c.v = c.v.narrow(1, 0, 0); },
     "k: expected at least 1 head"},
    {"Group", [](Case& c) { c.q = c.q.narrow(1, 0, 3); },
     "q: expected H to be a multiple of K = 2"},
    {"FewKeys", [](Case& c) { c.k = c.k.narrow(2, 0, 5), c.v = c.v.narrow(2, 0, 5); },
     "k: expected S >= T = 6, got S = 5"},
    {"OwnOffsetTooLarge", [](Case& c) { c.options.own_offset = 4; },
     "own_offset: expected own_offset + T <= S = 9 (query i owns key own_offset + i), got 4 + 6"},
    {"OwnOffsetNegative", [](Case& c) { c.options.own_offset = -1; },
     "own_offset: expected at least 0, got -1"},
    {"Scale", [](Case& c) { c.options.scale = NAN; },
     "scale: expected a finite float32 number, got nan"},
    {"Strength", [](Case& c) { c.options.strength = INFINITY; },
     "strength: expected a finite float32 number, got inf"},
    {"Eps", [](Case& c) { c.options.eps = 0; }, "eps: expected a finite number >= 1e-18, got 0"},
    {"Window", [](Case& c) { c.options.window = 0; }, "window: expected at least 1"},
    {"SinkKeys", [](Case& c) { c.options.num_sink_keys = -1; },
     "num_sink_keys: expected at least 0, got -1"},
    {"StrengthShape", [](Case& c) { c.options.learned_strength = at::ones({2, 4}); },
     "learned_strength: expected a scalar, [H] = [4] or [B, H, T] = [2, 4, 6], got [2, 4]"},
    {"StrengthHeads", [](Case& c) { c.options.learned_strength = at::ones({3}); },
     "learned_strength: expected a scalar"},
    {"StrengthType", [](Case& c) { c.options.learned_strength = ints({1, 1, 1, 1}); },
     "learned_strength: expected a floating-point tensor"},
    {"SinkLogits", [](Case& c) { c.options.sink_logits = at::ones({2}); },
     "sink_logits: expected [H] = [4]"},
    {"DocumentsBatch", [](Case& c) { c.options.cu_seqlens = ints({0, 6}); },
     "cu_seqlens: expected B = 1"},
    {"KeyStartShape", [](Case& c) { c.options.key_start = ints({0}); },
     "key_start: expected [B] = [2]"},
    {"KeyEndType", [](Case& c) { c.options.key_end = at::ones({2}); },
     "key_end: expected int32 or int64"},
    {"KeyStartNegative", [](Case& c) { c.options.key_start = ints({0, -1}); },
     "key_start: expected at least 0, got -1 at 1"},
    {"KeyEndTooLarge", [](Case& c) { c.options.key_end = ints({10, 9}); },
     "key_end: expected at most S = 9, got 10 at 0"},
    {"KeyRangeTurned",
     [](Case& c) { c.options.key_start = ints({5, 0}), c.options.key_end = ints({4, 9}); },
     "key_start: expected key_start <= key_end, got 5 and 4 at 0"},
};

class Refused : public ::testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(Checks, Refused, ::testing::ValuesIn(kWrong),
                         [](const auto& wrong) { return wrong.param.name; });

TEST_P(Refused, OnEveryPath) {
  for (const char* path : {"composite", "auto"}) {
    const BackendScope scope(path);
    Case c = good();
    GetParam().change(c);
    EXPECT_THAT(error_of(c), HasSubstr(GetParam().expected));
  }
}

TEST(Checks, RefuseWrongDocuments) {
  const std::pair<std::vector<std::int64_t>, const char*> wrong[] = {
      {{6}, "expected at least 2 entries"},
      {{1, 6}, "expected 0 first, got 1"},
      {{0, 5}, "expected T = 6 last, got 5"},
      {{0, 4, 2, 6}, "expected entries in rising order, got 4 before 2 at 1"}};
  for (const auto& [ends, expected] : wrong) {
    Case c = make_case({.batch = 1}, 1).cast(at::kFloat);
    c.options.cu_seqlens = ints(ends);
    EXPECT_THAT(error_of(c), HasSubstr(expected));
    c.options.cu_seqlens = ints({0, 6}, at::kLong);
    EXPECT_THAT(error_of(c), HasSubstr("expected int32"));
  }
}

TEST(Checks, RefuseGradientsOfAnotherCall) {
  const Case c = good();
  const AttentionResult out = attention(c.q, c.k, c.v);
  const auto backward = [&](const at::Tensor& dz, const at::Tensor& lse) {
    return call_attention_backward({dz, std::nullopt, c.q, c.k, c.v, out.z, lse, out.c}, {});
  };
  EXPECT_NO_THROW(backward(c.dz, out.lse));
  EXPECT_THROW(backward(c.dz.narrow(2, 0, 5), out.lse), c10::ValueError);
  EXPECT_THROW(backward(c.dz, out.lse.to(at::kDouble)), c10::ValueError);
}

TEST(Backend, SaysWhichPathAndWhy) {
  const Case c = good();
  EXPECT_EQ(attention_backend(c.q.to(at::kDouble), c.k.to(at::kDouble), c.v.to(at::kDouble)),
            "composite: float64 is for checking, and has no fused kernel");
  const BackendScope scope("composite");
  EXPECT_EQ(attention_backend(c.q, c.k, c.v), "composite: set_backend('composite') is in force");
}

TEST(Backend, AForcedKernelNeverFallsBackInSilence) {
  const BackendScope scope("cpu_fused");
  const Case c = make_case({}, 1);  // float64
  EXPECT_THROW(attention(c.q, c.k, c.v), c10::NotImplementedError);
}

TEST(Backend, AnUnknownNameIsAnError) {
  EXPECT_THROW(set_backend("fast"), c10::ValueError);
  EXPECT_EQ(backend(), "auto");
}

TEST(Checks, NumbersNearTheEndOfInt64DoNotWrapAround) {
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  Case c = make_case({}, 1).cast(at::kFloat);
  c.options.own_offset = largest;
  EXPECT_THROW(attention(c.q, c.k, c.v, c.options), c10::ValueError);
  c.options = {};
  const at::Tensor plain = attention(c.q, c.k, c.v, c.options).z;
  c.options.window = largest;
  EXPECT_TRUE(attention(c.q, c.k, c.v, c.options).z.equal(plain));
  c.options = {.num_sink_keys = largest};
  EXPECT_TRUE(attention(c.q, c.k, c.v, c.options).z.allclose(plain, 1e-5, 1e-5));
}

}  // namespace
}  // namespace xsa::op::testing
