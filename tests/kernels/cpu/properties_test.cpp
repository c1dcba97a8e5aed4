// What must hold of the fused kernels whatever the reference says: bits that depend on the input
// alone, and calls that say the same thing in two ways.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::fused_tolerances;
using testing::is_near;
using testing::Learned;
using testing::Packing;
using testing::Problem;
using testing::ProblemSpec;
using testing::Ranges;
using testing::same_bits;

struct Named {
  std::string name;
  ProblemSpec spec;
};

/// Each option, and what is easily wrong together; two sequences where the options allow it.
std::vector<Named> option_specs(std::int64_t queries, std::int64_t keys) {
  ProblemSpec plain = sized(queries, keys, 12, 16);
  plain.batch = 2, plain.query_heads = 4, plain.key_heads = 2;
  std::vector<Named> all;
  const auto add = [&](const char* name, const std::function<void(ProblemSpec&)>& change) {
    ProblemSpec spec = plain;
    change(spec);
    all.push_back({name, spec});
  };
  add("causal", [](ProblemSpec&) {});
  add("window and sinks", [](ProblemSpec& spec) {
    spec.window = 40, spec.num_sink_keys = 4, spec.with_sink_logits = true;
  });
  add("both sides, window", [](ProblemSpec& spec) { spec.is_causal = false, spec.window = 40; });
  add("documents", [](ProblemSpec& spec) {
    spec.batch = 1, spec.packing = Packing::kFew, spec.learned = Learned::kToken;
  });
  add("many documents, one key/value head", [](ProblemSpec& spec) {
    spec.batch = 1, spec.packing = Packing::kMany, spec.key_heads = 1, spec.num_sink_keys = 1;
  });
  add("padding", [](ProblemSpec& spec) {
    spec.ranges = Ranges::kBoth, spec.learned = Learned::kHead, spec.is_causal = false;
  });
  add("padding, sink logits, bf16", [](ProblemSpec& spec) {
    spec.ranges = Ranges::kLeft, spec.with_sink_logits = true, spec.type = Type::kBFloat16;
  });
  return all;
}

TEST_P(Fused, BitsDoNotDependOnWorkersWhateverTheOptions) {
  for (const auto& [queries, keys] : {std::pair{250, 260}, {1, 900}, {6, 900}})
    for (const auto& [name, spec] : option_specs(queries, keys)) {
      SCOPED_TRACE(name);
      Problem one(spec);
      run(one);
      for (const std::int64_t workers : {1, 2, 3, 7}) {
        Problem more(spec);
        run(more, workers);
        expect_same_bits(more, one);
      }
    }
}

/// The elements of sequence b, query (or key) head h; a [B, H, T] or [B, H] vector's likewise.
std::vector<double> head_of(const Array& array, std::int64_t b, std::int64_t h) {
  std::vector<double> values;
  array.for_each([&](auto at_b, auto at_h, auto t, auto d) {
    if (at_b == b && at_h == h) values.push_back(array.get(at_b, at_h, t, d));
  });
  return values;
}
std::vector<float> head_of(const std::vector<float>& values, const AttentionParams& p,
                           std::int64_t b, std::int64_t h) {
  const auto size = static_cast<std::int64_t>(values.size()) / (p.batch * p.query_heads);
  const auto first = values.begin() + (b * p.query_heads + h) * size;
  return {first, first + size};
}

/// Sequence b, key/value head `key_head` and its group have the same bits in both.
void expect_same_head(const Problem& actual, const Problem& expected, std::int64_t b,
                      std::int64_t key_head) {
  const AttentionParams& p = expected.options;
  for (const auto output : {&Problem::dk, &Problem::dv})
    EXPECT_TRUE(
        same_bits(head_of(actual.*output, b, key_head), head_of(expected.*output, b, key_head)));
  const std::int64_t group = p.query_heads / p.key_heads;
  for (std::int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
    for (const auto output : {&Problem::z, &Problem::dq})
      EXPECT_TRUE(same_bits(head_of(actual.*output, b, h), head_of(expected.*output, b, h)));
    for (const auto output :
         {&Problem::lse, &Problem::c, &Problem::dlearned_strength, &Problem::dsink_logits})
      EXPECT_TRUE(same_bits(head_of(actual.*output, p, b, h), head_of(expected.*output, p, b, h)));
  }
}

TEST_P(Fused, BitsDoNotDependOnNeighboursInTheBatchOrOtherHeads) {
  for (const auto& [queries, keys] : {std::pair{250, 260}, {3, 900}})
    for (const auto& [name, spec] : option_specs(queries, keys)) {
      if (spec.key_heads == 1) continue;
      SCOPED_TRACE(name);
      Problem quiet(spec), loud(spec);
      const std::int64_t last = spec.batch - 1;  // this sequence's last key/value head stays
      const std::int64_t group = spec.query_heads / spec.key_heads;
      for (Array* array : {&loud.q, &loud.k, &loud.v, &loud.dz})
        array->for_each([&](auto b, auto h, auto t, auto d) {
          const std::int64_t key_head = array->sizes[1] == spec.key_heads ? h : h / group;
          if (b != last || key_head != spec.key_heads - 1)
            array->set(b, h, t, d, 1e3 * array->get(b, h, t, d));
        });
      run(quiet);
      run(loud);
      expect_same_head(loud, quiet, last, spec.key_heads - 1);
    }
}

TEST_P(Fused, ALaterTokenChangesNothingBeforeItWhateverTheOptions) {
  const std::int64_t length = 250;
  for (const auto& [name, spec] : option_specs(length, length)) {
    if (!spec.is_causal) continue;
    SCOPED_TRACE(name);
    for (const std::int64_t later : {1, 30, 100, 200})
      for (const double strange : {1e4, static_cast<double>(NAN)}) {
        Problem before(spec), after(spec);
        for (Array* array : {&after.q, &after.k, &after.v, &after.dz})
          array->for_each([&](auto b, auto h, auto t, auto d) {
            if (t >= later) array->set(b, h, t, d, strange * (1 + static_cast<double>(d % 3)));
          });
        run(before);
        run(after);
        const auto first_rows = [&](const Array& array) {
          std::vector<double> values;
          array.for_each([&](auto b, auto h, auto t, auto d) {
            if (t < later) values.push_back(array.get(b, h, t, d));
          });
          return values;
        };
        EXPECT_TRUE(same_bits(first_rows(after.z), first_rows(before.z)));
        EXPECT_TRUE(same_bits(first_rows(after.dq), first_rows(before.dq)));
        for (std::size_t n = 0; n < before.lse.size(); ++n) {
          if (static_cast<std::int64_t>(n) % length >= later) continue;
          ASSERT_EQ(after.lse[n], before.lse[n]);
          ASSERT_EQ(after.c[n], before.c[n]);
        }
      }
  }
}

/// Fills `part` from rows [begin, begin + its rows) of `whole`; queries and keys alike.
void cut_from(const Problem& whole, Problem& part, std::int64_t first_query,
              std::int64_t first_key) {
  const auto copy = [](const Array& from, Array& to, std::int64_t begin) {
    to.for_each(
        [&](auto b, auto h, auto t, auto d) { to.set(b, h, t, d, from.get(b, h, begin + t, d)); });
  };
  copy(whole.q, part.q, first_query), copy(whole.dz, part.dz, first_query);
  copy(whole.k, part.k, first_key), copy(whole.v, part.v, first_key);
  const std::int64_t queries = part.options.queries, all = whole.options.queries;
  for (std::int64_t n = 0; n < static_cast<std::int64_t>(part.dlse.size()); ++n)
    part.dlse[n] = whole.dlse[n / queries * all + first_query + n % queries];
}

/// Rows [begin, ...) of the whole are the part's.
void expect_part(const Problem& whole, const Problem& part, std::int64_t first_query,
                 std::int64_t first_key) {
  const auto same = [](const Array& from, const Array& to, std::int64_t begin, double tolerance) {
    std::vector<double> expected;
    to.for_each(
        [&](auto b, auto h, auto t, auto d) { expected.push_back(from.get(b, h, begin + t, d)); });
    EXPECT_TRUE(is_near(to.values(), expected, tolerance));
  };
  const testing::Tolerances tolerance = fused_tolerances(part, 8);  // two runs
  same(whole.z, part.z, first_query, tolerance.z);
  same(whole.dq, part.dq, first_query, tolerance.dq);
  same(whole.dk, part.dk, first_key, tolerance.dk);
  same(whole.dv, part.dv, first_key, tolerance.dv);
}

TEST_P(Fused, PackedDocumentsEqualTheDocumentsOneByOne) {
  for (const bool causal : {true, false}) {
    ProblemSpec spec = sized(230, 230, 12, 16);
    spec.query_heads = 4, spec.key_heads = 2, spec.is_causal = causal;
    Problem packed(spec);
    packed.cu_seqlens = {0, 1, 1, 100, 103, 230};
    run(packed);
    for (std::size_t m = 0; m + 1 < packed.cu_seqlens.size(); ++m) {
      const std::int64_t begin = packed.cu_seqlens[m];
      spec.queries = spec.keys = packed.cu_seqlens[m + 1] - begin;
      if (spec.queries == 0) continue;
      SCOPED_TRACE(begin);
      Problem one(spec);
      cut_from(packed, one, begin, begin);
      run(one);
      expect_part(packed, one, begin, begin);
    }
  }
}

TEST_P(Fused, PaddingEqualsCutting) {
  for (const bool causal : {true, false}) {
    ProblemSpec spec = sized(150, 150, 12, 16);
    spec.is_causal = causal, spec.num_sink_keys = 2, spec.window = 50;  // counted from key_start
    Problem padded(spec);
    padded.key_start = {13}, padded.key_end = {120};
    padded.dz.for_each([&](auto b, auto h, auto t, auto d) {  // nobody asks the padding's own rows
      if (t < 13 || t >= 120) padded.dz.set(b, h, t, d, 0);
    });
    for (std::int64_t t = 0; t < 150; ++t)
      if (t < 13 || t >= 120) padded.dlse[t] = 0;
    run(padded);
    spec.queries = spec.keys = 120 - 13;
    Problem cut(spec);
    cut_from(padded, cut, 13, 13);
    run(cut);
    expect_part(padded, cut, 13, 13);
  }
}

TEST_P(Fused, AWindowOfAllKeysIsNoWindow) {
  for (const bool causal : {true, false}) {
    ProblemSpec spec = sized(200, 230, 12, 16);
    spec.is_causal = causal;
    Problem without(spec);
    spec.window = 230;
    Problem with(spec);
    run(without);
    run(with);
    expect_part(without, with, 0, 0);
  }
}

TEST_P(Fused, AWindowOverALongSequenceMatchesTheReference) {
  for (const bool causal : {true, false}) {
    ProblemSpec spec = sized(1500, 1500, 8, 8);
    spec.is_causal = causal, spec.window = 100, spec.num_sink_keys = 4;
    expect_matches_reference(spec);
  }
}

TEST_P(Fused, AWindowOfOneSeesTheOwnKeyAlone) {
  ProblemSpec spec = sized(150, 150, 12, 16);
  spec.window = 1, spec.is_causal = false;
  Problem problem(spec);
  run(problem);
  for (const double z : problem.z.values())
    EXPECT_NEAR(z, 0, std::ldexp(problem.v.largest_norm(), -22));
  for (const float c : problem.c) EXPECT_NEAR(c, 1, 1e-6);
}

TEST_P(Fused, GroupedHeadsEqualRepeatedHeads) {
  ProblemSpec spec = sized(110, 120, 12, 16);
  spec.query_heads = 6, spec.key_heads = 2, spec.window = 60;
  Problem grouped(spec);
  spec.key_heads = 6;
  Problem repeated(spec);
  repeated.q = grouped.q, repeated.dz = grouped.dz, repeated.dlse = grouped.dlse;
  for (const auto input : {&Problem::k, &Problem::v})
    (repeated.*input).for_each([&](auto b, auto h, auto s, auto d) {
      (repeated.*input).set(b, h, s, d, (grouped.*input).get(b, h / 3, s, d));
    });
  run(grouped);
  run(repeated);
  const testing::Tolerances tolerance = fused_tolerances(grouped, 8);
  EXPECT_TRUE(is_near(grouped.z.values(), repeated.z.values(), tolerance.z));
  EXPECT_TRUE(is_near(grouped.dq.values(), repeated.dq.values(), tolerance.dq));
  grouped.dv.for_each([&](auto b, auto h, auto s, auto d) {
    double sum = 0;
    for (int n = 0; n < 3; ++n) sum += repeated.dv.get(b, 3 * h + n, s, d);
    ASSERT_NEAR(grouped.dv.get(b, h, s, d), sum, tolerance.dv);
  });
}

TEST_P(Fused, TwoHalvesOfTheKeysMergeByTheirLse) {
  ProblemSpec spec = sized(40, 300, 12, 16);
  spec.is_causal = false, spec.strength = 0;
  Problem whole(spec), low(spec), high(spec);
  low.key_end = {130}, high.key_start = {130};
  for (Problem* problem : {&whole, &low, &high}) run(*problem);
  const double tolerance = fused_tolerances(whole, 8).z;
  whole.z.for_each([&](auto b, auto h, auto t, auto d) {
    const auto share = [&](Problem& half) {
      return half.z.get(b, h, t, d) * std::exp(double{half.lse[t]} - double{whole.lse[t]});
    };
    ASSERT_NEAR(share(low) + share(high), whole.z.get(b, h, t, d), tolerance);
  });
}

TEST_P(Fused, HalfTypesRoundWithoutBias) {
  // Everything is positive, so that truncation would shift the means: by -0.14 % of bf16 and
  // -0.02 % of fp16. The standard error of an honest mean is below a hundredth of that.
  for (const auto& [type, truncated] :
       {std::pair{Type::kBFloat16, 1.4e-3}, {Type::kFloat16, 2e-4}}) {
    ProblemSpec spec = sized(200, 200, 32, 32);
    spec.type = type, spec.strength = 0, spec.with_dlse = false;
    Problem problem(spec);
    for (Array* array : {&problem.v, &problem.dz})
      array->for_each([&](auto... at) { array->set(at..., 1 + std::abs(array->get(at...))); });
    run(problem);
    const Expected expected(problem);
    EXPECT_LT(std::abs(testing::mean_signed_error(problem.z.values(), expected.out.z)),
              truncated / 10);
    EXPECT_LT(std::abs(testing::mean_signed_error(problem.dv.values(), expected.gradients.dv)),
              truncated / 10);
  }
}

TEST_P(Fused, DecodingEqualsTheLastRowsOfTheWhole) {
  for (const std::int64_t tokens : {1, 2, 5, 8, 9})
    for (const std::int64_t window : {0, 150}) {
      ProblemSpec spec = sized(700, 700, 12, 16);
      spec.query_heads = 4, spec.key_heads = 2, spec.window = window;
      Problem whole(spec);
      run(whole);
      spec.queries = tokens;
      Problem last(spec);
      cut_from(whole, last, 700 - tokens, 0);
      run(last);
      SCOPED_TRACE(tokens);
      const double tolerance = fused_tolerances(whole, 8).z;
      last.z.for_each([&](auto b, auto h, auto t, auto d) {
        ASSERT_NEAR(last.z.get(b, h, t, d), whole.z.get(b, h, 700 - tokens + t, d), tolerance);
      });
    }
}

}  // namespace
}  // namespace xsa::kernels
