// Scores far from ordinary. The kernel keeps a reference maximum from a row's first keys and starts
// again where later ones are far above it; sinks take part in the sum but in nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::is_near;
using testing::Learned;
using testing::Problem;
using testing::ProblemSpec;
using testing::same_bits;

void expect_matches(Problem& problem) {
  run(problem);
  expect_near(problem, Expected(problem));
}

/// One head of 40 queries over 400 keys (or others) whose scores are about `level(key)`, in units
/// of log 2: the first dimension carries the level, the others a little noise.
template <class Level>
Problem leveled(const Level& level, bool causal, std::int64_t queries = 40,
                std::int64_t keys = 400) {
  ProblemSpec spec = sized(queries, keys, 8, 8);
  spec.is_causal = causal;
  Problem problem(spec);
  problem.options.scale = 1;
  problem.q.for_each([&](auto... at) { problem.q.set(at..., 0.3 * problem.q.get(at...)); });
  for (std::int64_t t = 0; t < queries; ++t) problem.q.set(0, 0, t, 0, 1);
  for (std::int64_t s = 0; s < keys; ++s) problem.k.set(0, 0, s, 0, level(s) * std::log(2.0));
  return problem;
}

TEST_P(Fused, LoudLateKeysAfterQuietOnes) {
  // 2^40 is where a tile is done again, 2^127 where fp32 ends.
  for (const double jump : {10., 30., 58., 61., 64., 100., 125., 127., 128., 130., 300., 5000.})
    for (const std::int64_t from : {1, 17, 95, 96, 97, 250, 399})
      for (const bool causal : {true, false}) {
        SCOPED_TRACE(jump);
        SCOPED_TRACE(from);
        Problem problem = leveled([&](std::int64_t s) { return s < from ? 0 : jump; }, causal);
        expect_matches(problem);
      }
}

TEST_P(Fused, LoudKeysAfterRunsOfManyBlocks) {
  // 16 blocks of 96 keys make a run.
  for (const std::int64_t from : {1400, 1536, 1700, 3100, 3900})
    for (const double jump : {20., 61., 300.})
      for (const std::int64_t sinks : {0, 5}) {
        SCOPED_TRACE(from);
        SCOPED_TRACE(jump);
        Problem problem =
            leveled([&](std::int64_t s) { return s < from ? 0 : jump; }, true, 12, 4000);
        problem.options.num_sink_keys = sinks, problem.options.window = sinks ? 3500 : 0;
        expect_matches(problem);
      }
}

/// z is finite and the reference's.
void expect_finite_means(Problem& problem) {
  forward(problem.params());
  const ReferenceForward out = reference_forward(problem.params());
  double largest = 0;
  for (const double z : out.z) largest = std::max(largest, std::abs(z));
  ASSERT_TRUE(std::isfinite(largest));
  const testing::Tolerances tolerance = testing::fused_tolerances(problem);
  EXPECT_TRUE(is_near(problem.z.values(), out.z, tolerance.z));
  EXPECT_TRUE(is_near(doubles(problem.lse), out.lse, tolerance.lse));
}

TEST_P(Fused, LargeValuesUnderALoudLateKeyStayFinite) {
  // The last key's weight is e^26 times the others': y relative to those would leave fp32.
  for (const std::int64_t queries : {16, 4})
    for (const double strength : {0., 1.}) {
      ProblemSpec spec = sized(queries, 16, 1, 1);
      spec.is_causal = false, spec.strength = strength;
      Problem problem(spec);
      problem.options.scale = 1;
      problem.q.for_each([&](auto... at) { problem.q.set(at..., 1); });
      problem.k.for_each([&](auto... at) { problem.k.set(at..., 0); });
      problem.v.for_each([&](auto... at) { problem.v.set(at..., 2e27); });
      problem.k.set(0, 0, 15, 0, 26);
      forward(problem.params());
      for (const double z : problem.z.values())
        EXPECT_NEAR(z, strength == 0 ? 2e27 : 0, 2e27 * 1e-6) << queries;
    }
}

TEST_P(Fused, MeansOfManyLargeValuesStayFinite) {
  for (const std::int64_t queries : {40, 3})
    for (const int kind : {0, 1, 2, 3}) {
      SCOPED_TRACE(kind);
      ProblemSpec spec = sized(queries, 2000, 8, 8);
      spec.strength = 0, spec.type = kind == 1 ? Type::kBFloat16 : Type::kFloat32;
      if (kind == 2) spec.with_sink_logits = true, spec.num_sink_keys = 3, spec.window = 900;
      spec.is_causal = kind != 3;
      Problem problem(spec);
      if (kind == 3) problem.key_start = {1990};  // most own keys are invisible
      // Some dimensions cancel: their mean is far below what is summed.
      problem.v.for_each([&](auto b, auto h, auto s, auto d) {
        const double size = d % 2 == 0 || s % 2 == 0 ? 3e38 : -3e38;
        problem.v.set(b, h, s, d, size * (0.9 + 0.1 * std::tanh(problem.v.get(b, h, s, d))));
      });
      if (kind == 1) {
        forward(problem.params());
        for (const double z : problem.z.values()) EXPECT_TRUE(std::isfinite(z));
      } else {
        expect_finite_means(problem);
      }
    }
}

TEST_P(Fused, LogitsAndSinkLogitsNearTheLargestNumber) {
  for (const std::int64_t queries : {16, 4})
    for (const float sink : {3e38f, 1e38f}) {
      ProblemSpec spec = sized(queries, 16, 1, 4);
      spec.with_sink_logits = true, spec.is_causal = false;
      Problem problem(spec);
      problem.options.scale = 1;
      problem.sink_logits = {sink};
      for (Array* array : {&problem.q, &problem.k})  // 2.5e38
        array->for_each([&](auto... at) { array->set(at..., std::sqrt(2.5e38)); });
      expect_finite_means(problem);
      run(problem);
      EXPECT_NEAR(problem.lse[0] / std::max(sink, 2.5e38f), 1, 1e-6);
      for (const Array* gradient : {&problem.dq, &problem.dk, &problem.dv})
        for (const double value : gradient->values()) EXPECT_TRUE(std::isfinite(value));
      for (const float value : problem.dsink_logits) EXPECT_TRUE(std::isfinite(value));
    }
}

TEST_P(Fused, GradientsStayFiniteWhereTheOwnValueIsSmallBesideAnother) {
  ProblemSpec spec = sized(12, 12, 4, 4);
  spec.with_dlse = false;
  Problem problem(spec);
  problem.v.for_each([&](auto b, auto h, auto s, auto d) {
    problem.v.set(b, h, s, d, problem.v.get(b, h, s, d) * (s == 0 ? 1e10 : 1e-12));
  });
  problem.dz.for_each([&](auto... at) { problem.dz.set(at..., 1e6 * problem.dz.get(at...)); });
  run(problem);
  const Expected expected(problem);
  const auto near = [](const Array& actual, const std::vector<double>& wanted, double relative) {
    double largest = 0;
    for (const double x : wanted) largest = std::max(largest, std::abs(x));
    EXPECT_TRUE(is_near(actual.values(), wanted, relative * largest));
  };
  near(problem.dv, expected.gradients.dv, 1e-5);
  near(problem.dq, expected.gradients.dq, 1e-4);
  near(problem.dk, expected.gradients.dk, 1e-4);
}

TEST_P(Fused, QuietLateKeysAfterLoudOnes) {
  for (const double drop : {10., 60., 126., 130., 300., 5000.})
    for (const std::int64_t until : {1, 17, 96, 250}) {
      SCOPED_TRACE(drop);
      Problem problem = leveled([&](std::int64_t s) { return s < until ? drop : 0; }, true);
      expect_matches(problem);
    }
}

TEST_P(Fused, ScoresThatClimbAllTheWay) {
  for (const double step : {0.1, 0.5, 1., 3., 30.})
    for (const double direction : {1., -1.}) {
      SCOPED_TRACE(step);
      Problem problem = leveled(
          [&](std::int64_t s) { return direction * step * static_cast<double>(s); }, true, 200);
      expect_matches(problem);
    }
}

TEST_P(Fused, OneLoudKeyAmongQuietOnesHoweverDeepTheyAre) {
  for (const double base : {-3000., -200., 0., 3000.})
    for (const std::int64_t loud : {0, 100, 399}) {
      SCOPED_TRACE(base);
      Problem problem =
          leveled([&](std::int64_t s) { return base + (s == loud ? 200 : 0); }, false);
      expect_matches(problem);
    }
}

TEST_P(Fused, ARowThatIsDoneAgainLeavesItsNeighboursBits) {
  // Query 20's scores jump far up at key 150; the other rows of its panel stay as they were.
  for (const double loud : {1e3, 1e5}) {
    Problem calm = leveled([](std::int64_t) { return 0.0; }, true, 48), wild = calm;
    wild.q.set(0, 0, 20, 1, loud);
    run(calm);
    run(wild);
    const auto others = [](const Array& array) {
      std::vector<double> values;
      array.for_each([&](auto b, auto h, auto t, auto d) {
        if (t != 20) values.push_back(array.get(b, h, t, d));
      });
      return values;
    };
    EXPECT_TRUE(same_bits(others(wild.z), others(calm.z)));
    EXPECT_TRUE(same_bits(others(wild.dq), others(calm.dq)));
  }
}

TEST_P(Fused, ScoresOfAnySizeStayFinite) {
  for (const double size : {1e6, 3e7, 1e8, 1e12, 1e18})
    for (const bool causal : {true, false}) {
      SCOPED_TRACE(size);
      ProblemSpec spec = sized(40, 40, 16, 16);
      spec.is_causal = causal;
      Problem problem(spec);
      problem.q.for_each([&](auto... at) { problem.q.set(at..., size * problem.q.get(at...)); });
      forward(problem.params());
      for (const double z : problem.z.values()) EXPECT_TRUE(std::isfinite(z));
      for (const float lse : problem.lse) EXPECT_TRUE(std::isfinite(lse));
    }
}

TEST_P(Fused, EqualHugeScoresShareTheWeight) {
  ProblemSpec spec = sized(20, 20, 64, 8);
  spec.is_causal = false, spec.strength = 0, spec.type = Type::kFloat16;
  Problem problem(spec);
  for (Array* array : {&problem.q, &problem.k})
    array->for_each([&](auto... at) { array->set(at..., 65504); });
  problem.v.for_each([&](auto... at) { problem.v.set(at..., 2); });
  forward(problem.params());
  for (const double z : problem.z.values()) EXPECT_EQ(z, 2);
}

TEST_P(Fused, ASinkLogitOfMinusInfinityIsNone) {
  ProblemSpec spec = sized(20, 20, 8, 8);
  Problem with(spec), without(spec);
  for (Problem* problem : {&with, &without}) {
    problem->key_start = {6};  // the first rows see nothing
    problem->dlse.clear();
  }
  with.sink_logits = {-INFINITY};
  with.dsink_logits = {NAN};
  run(with);
  run(without);
  EXPECT_TRUE(is_near(with.z.values(), without.z.values(), 1e-6));
  EXPECT_EQ(with.lse[0], -INFINITY);
  EXPECT_EQ(with.dsink_logits[0], 0);
  EXPECT_TRUE(is_near(with.dq.values(), without.dq.values(), 1e-5));
}

TEST_P(Fused, HugeScoresLeaveTheLargestAlone) {
  // One key's score is above the others by more than fp32 can say: its value is the result.
  ProblemSpec spec = sized(30, 200, 1, 8);
  spec.is_causal = false, spec.strength = 0;
  Problem problem(spec);
  problem.options.scale = 1;
  problem.dlse.clear();
  const double huge = std::ldexp(1, 55);
  problem.q.for_each([&](auto... at) { problem.q.set(at..., huge); });
  for (std::int64_t s = 0; s < 200; ++s) problem.k.set(0, 0, s, 0, huge * (s == 150 ? 2 : 1));
  run(problem);
  for (std::int64_t t = 0; t < 30; ++t) {
    EXPECT_NEAR(problem.lse[t] / (2 * huge * huge), 1, 1e-6);
    for (std::int64_t d = 0; d < 8; ++d) {
      const double value = problem.v.get(0, 0, 150, d);
      EXPECT_NEAR(problem.z.get(0, 0, t, d), value, std::ldexp(std::abs(value), -22));
      EXPECT_NEAR(problem.dq.get(0, 0, t, 0), 0, 1e-4 * huge);
    }
  }
}

TEST_P(Fused, ALoudSinkLogitTakesAllTheWeight) {
  ProblemSpec spec = sized(60, 100, 8, 8);
  spec.query_heads = 4, spec.key_heads = 2, spec.with_sink_logits = true;
  Problem problem(spec);
  problem.sink_logits = {100, 1000, 40, 88};
  expect_matches(problem);
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t t = 0; t < 60; ++t) {
      EXPECT_NEAR(problem.lse[h * 60 + t], problem.sink_logits[h], 1e-6 * problem.sink_logits[h]);
      EXPECT_NEAR(problem.z.get(0, h, t, 0), 0, 1e-12);
    }
}

TEST_P(Fused, AFaintSinkLogitChangesNothing) {
  ProblemSpec spec = sized(60, 100, 8, 8);
  Problem without(spec);
  run(without);
  Problem faint = without;
  faint.sink_logits = {-100}, faint.dsink_logits = {NAN};
  expect_matches(faint);
  const testing::Tolerances tolerance = testing::fused_tolerances(without);
  EXPECT_TRUE(is_near(faint.z.values(), without.z.values(), tolerance.z));
  EXPECT_TRUE(is_near(faint.dv.values(), without.dv.values(), tolerance.dv));
  EXPECT_LT(std::abs(faint.dsink_logits[0]), 1e-30);
}

TEST_P(Fused, SinkLogitsAndLoudLateKeysTogether) {
  for (const float sink : {-100.0f, 0.0f, 60.0f, 100.0f})
    for (const double jump : {30., 100., 300.}) {
      SCOPED_TRACE(sink);
      Problem problem = leveled([&](std::int64_t s) { return s < 200 ? 0 : jump; }, true, 300);
      problem.sink_logits = {sink}, problem.dsink_logits = {NAN};
      expect_matches(problem);
    }
}

TEST_P(Fused, TakesAnyScale) {
  for (const double scale : {0.0, -1.0, 3.0, 1e-20}) {
    ProblemSpec spec = sized(70, 120, 8, 8);
    spec.with_sink_logits = true;
    Problem problem(spec);
    problem.options.scale = scale;
    SCOPED_TRACE(scale);
    expect_matches(problem);
  }
}

TEST_P(Fused, EpsDecidesWhereTheOwnValueIsShorter) {
  for (const double eps : {1e-18, 1.0, 3.0, 100.0}) {
    ProblemSpec spec = sized(70, 70, 8, 8);
    spec.learned = Learned::kToken, spec.window = 20;
    Problem problem(spec);
    problem.options.eps = eps;
    SCOPED_TRACE(eps);
    expect_matches(problem);
  }
}

}  // namespace
}  // namespace xsa::kernels
