// The fused kernels against the double reference, on every instruction set that this machine has.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/tolerance.h"
#include "xsa/base/error.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::fused_tolerances;
using testing::is_near;
using testing::Layout;
using testing::Problem;
using testing::ProblemSpec;
using testing::same_bits;
using testing::Values;

TEST_P(Fused, EqualsTheReferenceAroundEveryTileSize) {
  // Lanes 4, 8, 16; panels 12, 24, 48; key blocks of 96; query blocks up to 192.
  for (const std::int64_t length :
       {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 25, 47, 48, 49, 65, 95, 96, 97, 193})
    for (const bool causal : {true, false}) {
      ProblemSpec spec = sized(length, length, 8, 8);
      spec.is_causal = causal, spec.seed = length;
      expect_matches_reference(spec);
    }
}

TEST_P(Fused, EqualsTheReferenceForEveryHeadDimension) {
  for (const auto& [head_dim, value_dim] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                          {1, 256},
                                                          {2, 3},
                                                          {5, 7},
                                                          {16, 31},
                                                          {33, 32},
                                                          {64, 64},
                                                          {80, 48},
                                                          {128, 128},
                                                          {129, 130},
                                                          {255, 1},
                                                          {256, 256}})
    expect_matches_reference(sized(20, 20, head_dim, value_dim));
}

TEST_P(Fused, EqualsTheReferenceWhereQueriesAndKeysDiffer) {
  for (const auto& [queries, keys, own_offset] : std::vector<std::array<std::int64_t, 3>>{
           {1, 200, 199}, {1, 1, 0}, {5, 120, 115}, {50, 131, 81}, {40, 120, 7}, {17, 100, 0}})
    for (const bool causal : {true, false}) {
      ProblemSpec spec = sized(queries, keys, 8, 12);
      spec.own_offset = own_offset, spec.is_causal = causal;
      expect_matches_reference(spec);
    }
}

TEST_P(Fused, EqualsTheReferenceForGroupsAndStrengths) {
  for (const auto& [batch, query_heads, key_heads] : std::vector<std::array<std::int64_t, 3>>{
           {2, 4, 2}, {1, 6, 1}, {3, 3, 3}, {1, 12, 12}, {4, 4, 2}})
    for (const double strength : {1.0, 0.0, 0.5, -1.5}) {
      ProblemSpec spec = sized(33, 33, 8, 8);
      spec.batch = batch, spec.query_heads = query_heads, spec.key_heads = key_heads;
      spec.strength = strength, spec.with_dlse = strength != 0.5;
      expect_matches_reference(spec);
    }
}

TEST_P(Fused, EqualsTheReferenceForEveryLayoutTypeAndKindOfValues) {
  std::uint64_t seed = 0;
  for (const Layout layout : {Layout::kDense, Layout::kTokenMajor, Layout::kPadded,
                              Layout::kInnermost, Layout::kExpanded})
    for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
      for (const Values values : {Values::kOrdinary, Values::kPeaky, Values::kHostile}) {
        ProblemSpec spec = sized(37, 50, 16, 16);
        spec.batch = 2, spec.query_heads = 4, spec.key_heads = 2;
        spec.layout = layout, spec.type = type, spec.values = values;
        spec.is_causal = ++seed % 3 != 0, spec.seed = seed;
        expect_matches_reference(spec);
      }
}

TEST_P(Fused, EqualsTheReferenceOverSeveralBlocksOfQueriesAndKeys) {
  ProblemSpec spec = sized(400, 437, 16, 16);
  spec.values = Values::kPeaky;
  expect_matches_reference(spec);
  spec.type = Type::kBFloat16, spec.is_causal = false;
  expect_matches_reference(spec);
}

TEST_P(Fused, EqualsTheReferenceWhereAHeadsKeysAreCutIntoParts) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16})
    for (const std::int64_t window : {0, 700}) {  // 700: blocks of queries that meet no first part
      ProblemSpec spec = sized(60, 3300, 4, 4);
      spec.type = type;
      Problem problem(spec);
      problem.options.window = window;
      run(problem);
      const ReferenceForward out = reference_forward(problem.params());
      const ReferenceBackward gradients = reference_backward(problem.params());
      const testing::Tolerances tolerance = fused_tolerances(problem);
      EXPECT_TRUE(is_near(problem.z.values(), out.z, tolerance.z));
      EXPECT_TRUE(is_near(problem.dq.values(), gradients.dq, tolerance.dq));
      EXPECT_TRUE(is_near(problem.dk.values(), gradients.dk, tolerance.dk));
      EXPECT_TRUE(is_near(problem.dv.values(), gradients.dv, tolerance.dv));
    }
}

TEST_P(Fused, TakesALearnedStrength) {
  ProblemSpec spec = sized(21, 21, 8, 8);
  spec.batch = 2, spec.query_heads = 4, spec.key_heads = 2;
  Problem problem(spec);
  problem.learned_strength = {0.5f, -1.0f, 0.0f, 2.0f};
  problem.options.learned_strength_stride = {0, 1, 0};
  problem.dlearned_strength.assign(2 * 4 * 21, NAN);
  run(problem);
  const ReferenceBackward gradients = reference_backward(problem.params());
  const ReferenceForward out = reference_forward(problem.params());
  EXPECT_TRUE(is_near(problem.z.values(), out.z, fused_tolerances(problem).z));
  EXPECT_TRUE(is_near(problem.dv.values(), gradients.dv, 2 * fused_tolerances(problem).dv));
  EXPECT_TRUE(is_near(doubles(problem.dlearned_strength), gradients.dlearned_strength,
                      fused_tolerances(problem).c * problem.dz.largest_norm()));
}

TEST_P(Fused, BitsDoNotDependOnWorkers) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16})
    for (const std::int64_t key_heads : {1, 9}) {  // 1: a head's backward is cut into parts
      const bool few = key_heads == 1;
      ProblemSpec spec = sized(few ? 300 : 40, few ? 4200 : 300, 16, 16);
      spec.query_heads = 2 * key_heads, spec.key_heads = key_heads, spec.type = type;
      Problem one(spec);
      run(one);
      for (const std::int64_t workers : {2, 3}) {
        Problem more(spec);
        run(more, workers);
        for (const auto output : {&Problem::z, &Problem::dq, &Problem::dk, &Problem::dv})
          EXPECT_TRUE(same_bits((more.*output).values(), (one.*output).values()));
        EXPECT_TRUE(same_bits(more.lse, one.lse));
        EXPECT_TRUE(same_bits(more.c, one.c));
      }
    }
}

TEST_P(Fused, TheForwardsBitsDoNotDependOnTheBatch) {
  ProblemSpec spec = sized(70, 70, 16, 16);
  spec.batch = 3;
  Problem batch(spec);
  forward(batch.params());
  spec.batch = 1;
  Problem alone(spec);
  for (const auto input : {&Problem::q, &Problem::k, &Problem::v})
    (alone.*input).for_each([&](auto, auto h, auto t, auto d) {
      (alone.*input).set(0, h, t, d, (batch.*input).get(2, h, t, d));
    });
  forward(alone.params());
  const std::vector<double> all = batch.z.values();
  EXPECT_TRUE(same_bits(alone.z.values(), {all.end() - 70 * 16, all.end()}));
}

TEST_P(Fused, TheBackwardsBitsDoNotDependOnTheBatch) {
  // Many sequences: all parts of a head's keys are one task; one alone: a task each.
  for (const Type type : {Type::kFloat32, Type::kBFloat16}) {
    ProblemSpec spec = sized(20, 2200, 4, 4);
    spec.batch = 40, spec.type = type, spec.with_dlse = false;
    Problem batch(spec);
    run(batch);
    spec.batch = 1;
    Problem alone(spec);
    for (const auto input : {&Problem::q, &Problem::k, &Problem::v, &Problem::dz})
      (alone.*input).for_each([&](auto, auto h, auto t, auto d) {
        (alone.*input).set(0, h, t, d, (batch.*input).get(39, h, t, d));
      });
    run(alone);
    for (const auto output : {&Problem::z, &Problem::dq, &Problem::dk, &Problem::dv}) {
      const std::vector<double> all = (batch.*output).values(), one = (alone.*output).values();
      EXPECT_TRUE(same_bits(one, {all.end() - static_cast<std::ptrdiff_t>(one.size()), all.end()}));
    }
  }
}

TEST_P(Fused, StrengthZeroLeavesYToTheBit) {
  ProblemSpec spec = sized(60, 60, 16, 16);
  Problem nothing_to_exclude(spec);
  nothing_to_exclude.options.eps = 1e30;  // c is 0 in fp32, so that z is y
  forward(nothing_to_exclude.params());
  spec.strength = 0;
  Problem standard(spec);
  forward(standard.params());
  EXPECT_TRUE(same_bits(standard.z.values(), nothing_to_exclude.z.values()));
  EXPECT_NE(standard.c[59], 0);  // a diagnostic that standard attention has too
}

TEST_P(Fused, LeavesNothingAlongTheOwnValue) {
  Problem problem(sized(100, 100, 16, 16));
  forward(problem.params());
  for (std::int64_t t = 0; t < 100; ++t) {
    double along = 0, norms = 0;
    for (std::int64_t d = 0; d < 16; ++d) {
      along += problem.z.get(0, 0, t, d) * problem.v.get(0, 0, t, d);
      norms += std::abs(problem.v.get(0, 0, t, d));
    }
    EXPECT_NEAR(along, 0, std::ldexp(norms, -21));
  }
}

TEST_P(Fused, TheFirstTokenHasNothingLeft) {
  Problem problem(sized(10, 10, 16, 16));
  forward(problem.params());
  for (std::int64_t d = 0; d < 16; ++d)
    EXPECT_NEAR(problem.z.get(0, 0, 0, d), 0, std::ldexp(problem.v.largest_norm(), -22));
}

TEST_P(Fused, ALaterTokenChangesNothingBeforeIt) {
  const std::int64_t later = 37;
  for (const double strange : {100.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    Problem before(sized(80, 80, 16, 16)), after(sized(80, 80, 16, 16));
    for (Array* array : {&after.q, &after.k, &after.v})
      for (std::int64_t d = 0; d < 16; ++d) array->set(0, 0, later, d, strange);
    run(before);
    run(after);
    const auto first_rows = [&](const Array& array) {
      std::vector<double> values = array.values();
      values.resize(later * 16);
      return values;
    };
    EXPECT_TRUE(same_bits(first_rows(after.z), first_rows(before.z))) << strange;
    EXPECT_TRUE(same_bits(first_rows(after.dq), first_rows(before.dq))) << strange;
  }
}

TEST_P(Fused, ANanReachesEveryRowThatSeesIt) {
  Problem problem(sized(80, 80, 16, 16));
  problem.k.set(0, 0, 37, 3, NAN);
  run(problem);
  for (std::int64_t t = 0; t < 80; ++t)
    for (std::int64_t d = 0; d < 16; ++d)
      EXPECT_EQ(std::isnan(problem.z.get(0, 0, t, d)), t >= 37) << t;
}

TEST_P(Fused, KeysBehindTheLastQueryAreNeverRead) {
  ProblemSpec spec = sized(30, 100, 16, 16);  // a static cache, filled up to 40
  spec.own_offset = 10;
  Problem clean(spec), dirty(spec);
  for (std::int64_t s = 40; s < 100; ++s)
    for (std::int64_t d = 0; d < 16; ++d) {
      dirty.k.set(0, 0, s, d, NAN);
      dirty.v.set(0, 0, s, d, NAN);
    }
  run(clean);
  run(dirty);
  for (const auto output : {&Problem::z, &Problem::dq, &Problem::dk, &Problem::dv})
    EXPECT_TRUE(same_bits((dirty.*output).values(), (clean.*output).values()));
  EXPECT_EQ(dirty.dk.get(0, 0, 99, 0), 0);
}

TEST_P(Fused, HugeAndTinyValuesStayFinite) {
  for (const double size : {1e30, 1e19, 1e-10, 1e-13, 1e-25, 0.0}) {
    Problem problem(sized(50, 50, 8, 8));
    problem.dlse.clear();
    problem.v.for_each([&](auto... at) { problem.v.set(at..., size * problem.v.get(at...)); });
    run(problem);
    const ReferenceForward out = reference_forward(problem.params());
    const ReferenceBackward gradients = reference_backward(problem.params());
    const double v = problem.v.largest_norm();
    EXPECT_TRUE(is_near(problem.z.values(), out.z, 1e-5 * v)) << size;
    EXPECT_TRUE(is_near(doubles(problem.c), out.c, 1e-4)) << size;
    EXPECT_TRUE(is_near(problem.dq.values(), gradients.dq, 1e-4 * v)) << size;
    EXPECT_TRUE(is_near(problem.dv.values(), gradients.dv, 1e-3)) << size;
  }
}

TEST_P(Fused, EmptySizesAreFine) {
  Problem no_batch([] {
    ProblemSpec spec = sized(3, 3, 4, 4);
    spec.batch = 0;
    return spec;
  }());
  run(no_batch);
  Problem no_queries(sized(0, 5, 4, 4));
  run(no_queries);
  EXPECT_TRUE(is_near(no_queries.dk.values(), std::vector<double>(20), 0));
  EXPECT_TRUE(is_near(no_queries.dv.values(), std::vector<double>(20), 0));
  Problem nothing(sized(0, 0, 4, 4));
  run(nothing);
}

TEST(Unsupported, SaysWhatTheKernelDoesNotTake) {
  Problem problem(sized(4, 4, 4, 4));
  EXPECT_EQ(unsupported(problem.params()), "");
  problem.options.head_dim = 257;
  EXPECT_EQ(unsupported(problem.params()), "the CPU kernel takes head dimensions from 1 to 256");
  problem.options.head_dim = 4, problem.options.type = Type::kFloat64;
  EXPECT_NE(unsupported(problem.params()), "");
}

}  // namespace
}  // namespace xsa::kernels
