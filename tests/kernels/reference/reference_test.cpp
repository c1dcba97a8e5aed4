// The definition against finite differences in double, and against the properties that need no
// other implementation.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "xsa/base/error.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::is_near;
using testing::Problem;
using testing::ProblemSpec;

ProblemSpec small() {
  ProblemSpec spec;
  spec.batch = 2, spec.query_heads = 4, spec.key_heads = 2, spec.queries = 4, spec.keys = 6;
  spec.head_dim = 3, spec.value_dim = 5;
  spec.type = Type::kFloat64;
  spec.is_causal = true;
  return spec;
}

/// sum z dz + lse dlse: what the backward differentiates.
double loss(Problem& problem) {
  const ReferenceForward out = reference_forward(problem.params());
  const std::vector<double> dz = problem.dz.values();
  double sum = std::inner_product(out.z.begin(), out.z.end(), dz.begin(), 0.0);
  for (std::size_t n = 0; n < out.lse.size(); ++n)
    if (std::isfinite(out.lse[n]) && !problem.dlse.empty()) sum += out.lse[n] * problem.dlse[n];
  return sum;
}

/// d loss / d element by central differences.
std::vector<double> numeric_gradient(Problem& problem, Array Problem::*input, double step = 1e-5) {
  std::vector<double> gradient;
  Array& array = problem.*input;
  array.for_each([&](auto... at) {
    const double value = array.get(at...);
    array.set(at..., value + step);
    const double above = loss(problem);
    array.set(at..., value - step);
    const double below = loss(problem);
    array.set(at..., value);
    gradient.push_back((above - below) / (2 * step));
  });
  return gradient;
}

std::vector<double> numeric_gradient(Problem& problem, std::vector<float>& input) {
  std::vector<double> gradient;
  for (float& element : input) {
    const float value = element, step = 1.0f / 1024;  // exact in fp32
    element = value + step;
    const double above = loss(problem);
    element = value - step;
    const double below = loss(problem);
    element = value;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}

void expect_gradients(Problem& problem, double step = 1e-5, double tolerance = 2e-8) {
  const ReferenceBackward out = reference_backward(problem.params());
  EXPECT_TRUE(is_near(out.dq, numeric_gradient(problem, &Problem::q), tolerance));
  EXPECT_TRUE(is_near(out.dk, numeric_gradient(problem, &Problem::k), tolerance));
  EXPECT_TRUE(is_near(out.dv, numeric_gradient(problem, &Problem::v, step), tolerance));
}

TEST(Reference, GradientsAreFiniteDifferences) {
  for (const double strength : {1.0, 0.0, 0.5, -2.0})
    for (const bool causal : {true, false}) {
      ProblemSpec spec = small();
      spec.strength = strength, spec.is_causal = causal;
      SCOPED_TRACE(describe(spec));
      Problem problem(spec);
      expect_gradients(problem);
    }
}

TEST(Reference, GradientsHoldForEveryMask) {
  Problem window(small());
  window.options.window = 2;
  expect_gradients(window);

  Problem sinks(small());
  sinks.options.window = 1, sinks.options.num_sink_keys = 2;
  expect_gradients(sinks);

  ProblemSpec packed_spec = small();
  packed_spec.batch = 1, packed_spec.queries = 6;
  Problem packed(packed_spec);
  packed.cu_seqlens = {0, 2, 2, 5, 6};
  expect_gradients(packed);

  Problem padded(small());
  padded.key_start = {4, 1}, padded.key_end = {6, 4};  // rows that see no key, and no own key
  expect_gradients(padded);
}

TEST(Reference, GradientsHoldForALearnedStrengthAndSinkLogits) {
  Problem problem(small());
  problem.learned_strength = {0.5f, -1.0f, 1.0f, 2.0f};
  problem.options.learned_strength_stride = {0, 1, 0};
  problem.sink_logits = {0.5f, -1.0f, 3.0f, 0.0f};
  problem.key_start = {4, 0};
  expect_gradients(problem);

  const ReferenceBackward out = reference_backward(problem.params());
  std::vector<double> dstrength(4);
  for (std::size_t n = 0; n < out.dlearned_strength.size(); ++n)
    dstrength[n / 4 % 4] += out.dlearned_strength[n];
  EXPECT_TRUE(is_near(dstrength, numeric_gradient(problem, problem.learned_strength), 1e-8));
  EXPECT_TRUE(is_near(out.dsink_logits, numeric_gradient(problem, problem.sink_logits), 1e-5));
}

TEST(Reference, GradientsHoldWhereEpsDecidesTheNorm) {
  Problem problem(small());
  problem.options.eps = 1e3;
  expect_gradients(problem);
  Problem tiny(small());
  tiny.options.eps = 1e-3;
  tiny.v.for_each([&](auto... at) { tiny.v.set(at..., 1e-4 * tiny.v.get(at...)); });
  expect_gradients(tiny, 1e-9, 1e-4);
}

TEST(Reference, ForwardIsTheFormulaForTwoKeys) {
  ProblemSpec spec;
  spec.keys = 2, spec.head_dim = 1, spec.value_dim = 2, spec.type = Type::kFloat64;
  Problem problem(spec);
  problem.options.scale = 2;
  problem.q.set(0, 0, 0, 0, 0.5);
  problem.k.set(0, 0, 0, 0, std::log(3.0));
  problem.k.set(0, 0, 1, 0, 0);
  for (const auto& [s, d, value] : {std::tuple{0, 0, 4.0}, {0, 1, 0.0}, {1, 0, 2.0}, {1, 1, 2.0}})
    problem.v.set(0, 0, s, d, value);
  // p = (3/4, 1/4), y = (3.5, 0.5), w = (2, 2): c = 8/8, z = y - w.
  const ReferenceForward out = reference_forward(problem.params());
  EXPECT_TRUE(is_near(out.z, {1.5, -1.5}, 1e-14));
  EXPECT_TRUE(is_near(out.lse, {std::log(4.0)}, 1e-14));
  EXPECT_TRUE(is_near(out.c, {1.0}, 1e-14));
}

TEST(Reference, LeavesNothingAlongTheOwnValue) {
  Problem problem(small());
  const ReferenceForward out = reference_forward(problem.params());
  for (std::int64_t row = 0; row < 2 * 4 * 4; ++row) {
    const std::int64_t b = row / 16, h = row / 4 % 4, i = row % 4;
    double along = 0;
    for (std::int64_t d = 0; d < 5; ++d)
      along += out.z[row * 5 + d] * problem.v.get(b, h / 2, 2 + i, d);
    EXPECT_NEAR(along, 0, 1e-14);
  }
}

TEST(Reference, PackedDocumentsEqualTheDocumentsOneByOne) {
  ProblemSpec spec = small();
  spec.batch = 1, spec.queries = spec.keys = 7;
  Problem packed(spec);
  packed.cu_seqlens = {0, 3, 7};
  const ReferenceForward whole = reference_forward(packed.params());
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 7}}) {
    Problem one(spec);
    AttentionParams params = one.params();
    params.queries = params.keys = end - begin;
    const auto from = [&](View view) {
      view.data = static_cast<const double*>(view.data) + begin * view.stride[2];
      return view;
    };
    params.q = from(params.q), params.k = from(params.k), params.v = from(params.v);
    const ReferenceForward part = reference_forward(params);
    std::vector<double> expected;
    for (int h = 0; h < 4; ++h)
      expected.insert(expected.end(), whole.z.begin() + (h * 7 + begin) * 5,
                      whole.z.begin() + (h * 7 + end) * 5);
    EXPECT_TRUE(is_near(part.z, expected, 1e-14));
  }
}

TEST(Reference, PaddingEqualsCutting) {
  ProblemSpec spec = small();
  spec.batch = 1, spec.queries = spec.keys = 6;
  Problem padded(spec), cut(spec);
  padded.key_start = {2}, padded.key_end = {5};
  for (const std::int64_t hidden : {0, 1, 5})  // what is there must not matter
    padded.v.set(0, 0, hidden, 0, NAN), padded.k.set(0, 1, hidden, 0, INFINITY);
  const ReferenceForward all = reference_forward(padded.params());
  AttentionParams params = cut.params();
  params.queries = params.keys = 3;
  const auto from = [](View view) {
    view.data = static_cast<const double*>(view.data) + 2 * view.stride[2];
    return view;
  };
  params.q = from(params.q), params.k = from(params.k), params.v = from(params.v);
  const ReferenceForward part = reference_forward(params);
  for (int h = 0; h < 4; ++h)
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(all.lse[h * 6 + 2 + i], part.lse[h * 3 + i], 1e-14);
      for (int d = 0; d < 5; ++d)
        EXPECT_NEAR(all.z[(h * 6 + 2 + i) * 5 + d], part.z[(h * 3 + i) * 5 + d], 1e-14);
    }
}

TEST(Reference, ARowWithoutAVisibleKeyIsZero) {
  ProblemSpec spec = small();
  spec.batch = 1, spec.queries = spec.keys = 3;
  Problem problem(spec);
  problem.key_start = {1};  // query 0 sees nothing
  problem.v.set(0, 0, 0, 0, NAN);
  problem.dz.set(0, 0, 0, 0, NAN);
  const ReferenceForward out = reference_forward(problem.params());
  EXPECT_EQ(out.lse[0], -INFINITY);
  EXPECT_EQ(out.c[0], 0);
  for (int d = 0; d < 5; ++d) EXPECT_EQ(out.z[d], 0);
  const ReferenceBackward gradients = reference_backward(problem.params());
  for (int d = 0; d < 3; ++d) EXPECT_EQ(gradients.dq[d], 0);
  for (const double g : gradients.dv) EXPECT_TRUE(std::isfinite(g));

  problem.sink_logits = {0.5f, 0.5f, 0.5f, 0.5f};
  EXPECT_DOUBLE_EQ(reference_forward(problem.params()).lse[0], 0.5);
}

TEST(Reference, AWindowOfAllKeysIsNoWindow) {
  Problem problem(small());
  const ReferenceForward without = reference_forward(problem.params());
  problem.options.window = 6;
  EXPECT_TRUE(testing::same_bits(reference_forward(problem.params()).z, without.z));
}

TEST(Reference, AWindowOfOneSeesTheOwnKeyAlone) {
  Problem problem(small());
  problem.options.window = 1, problem.options.is_causal = false;
  const ReferenceForward out = reference_forward(problem.params());
  for (const double z : out.z) EXPECT_NEAR(z, 0, 1e-15);
  for (const double c : out.c) EXPECT_NEAR(c, 1, 1e-14);
}

TEST(Reference, TwoHalvesOfTheKeysMergeByTheirLse) {
  ProblemSpec spec = small();
  spec.is_causal = false, spec.strength = 0, spec.batch = 1;
  Problem problem(spec);
  const ReferenceForward whole = reference_forward(problem.params());
  problem.key_end = {3};
  const ReferenceForward low = reference_forward(problem.params());
  problem.key_start = {3}, problem.key_end = {6};
  const ReferenceForward high = reference_forward(problem.params());
  std::vector<double> merged;
  for (std::size_t n = 0; n < whole.z.size(); ++n) {
    const std::size_t row = n / 5;
    merged.push_back(low.z[n] * std::exp(low.lse[row] - whole.lse[row]) +
                     high.z[n] * std::exp(high.lse[row] - whole.lse[row]));
  }
  EXPECT_TRUE(is_near(merged, whole.z, 1e-14));
}

TEST(Reference, ReadsEveryTypeAndLayout) {
  for (const Type type : {Type::kFloat64, Type::kFloat32, Type::kFloat16, Type::kBFloat16})
    for (const auto layout : {testing::Layout::kTokenMajor, testing::Layout::kPadded,
                              testing::Layout::kInnermost, testing::Layout::kExpanded}) {
      ProblemSpec spec = small();
      spec.type = type, spec.layout = layout;
      SCOPED_TRACE(describe(spec));
      Problem strided(spec);
      spec.type = Type::kFloat64, spec.layout = testing::Layout::kDense;
      Problem dense(spec);
      for (const auto input : {&Problem::q, &Problem::k, &Problem::v})
        (dense.*input).for_each([&](auto... at) {
          (dense.*input).set(at..., (strided.*input).get(at...));
        });
      EXPECT_TRUE(testing::same_bits(reference_forward(strided.params()).z,
                                     reference_forward(dense.params()).z));
    }
}

}  // namespace
}  // namespace xsa::kernels
