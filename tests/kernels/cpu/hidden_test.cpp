// What must not be seen is not seen: NaN, infinities and loud numbers in keys, values, queries and
// gradients reach exactly the rows that may see them, forward and backward, to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "tests/support/mask_rule.h"
#include "tests/support/tolerance.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::Learned;
using testing::Packing;
using testing::Problem;
using testing::ProblemSpec;
using testing::Ranges;
using testing::same_bits;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kStrange[] = {kNan, INFINITY, -INFINITY, 3e38};

/// Which rows of queries (or keys) of which sequence.
using Chosen = std::function<bool(std::int64_t b, std::int64_t row)>;

void poison(Array& array, const Chosen& chosen, double value) {
  array.for_each([&](auto b, auto h, auto t, auto d) {
    if (chosen(b, t)) array.set(b, h, t, d, value);
  });
}

/// The elements of the rows of a [B, H, T, D] array, or of a [B, H, T] one, that are `kept`.
std::vector<double> kept_rows(const Array& array, const Chosen& kept) {
  std::vector<double> values;
  array.for_each([&](auto b, auto h, auto t, auto d) {
    if (kept(b, t)) values.push_back(array.get(b, h, t, d));
  });
  return values;
}
std::vector<float> kept_rows(const std::vector<float>& rows, const AttentionParams& p,
                             const Chosen& kept) {
  std::vector<float> values;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const auto at = static_cast<std::int64_t>(n);
    if (kept(at / (p.query_heads * p.queries), at % p.queries)) values.push_back(rows[n]);
  }
  return values;
}

/// Rows of queries and of keys for which both problems have the same bits.
void expect_same_where(const Problem& actual, const Problem& expected, const Chosen& queries,
                       const Chosen& keys) {
  const AttentionParams& p = expected.options;
  EXPECT_TRUE(same_bits(kept_rows(actual.z, queries), kept_rows(expected.z, queries))) << "z";
  EXPECT_TRUE(same_bits(kept_rows(actual.dq, queries), kept_rows(expected.dq, queries))) << "dq";
  for (const auto output : {&Problem::lse, &Problem::c, &Problem::dlearned_strength})
    EXPECT_TRUE(
        same_bits(kept_rows(actual.*output, p, queries), kept_rows(expected.*output, p, queries)));
  EXPECT_TRUE(same_bits(kept_rows(actual.dk, keys), kept_rows(expected.dk, keys))) << "dk";
  EXPECT_TRUE(same_bits(kept_rows(actual.dv, keys), kept_rows(expected.dv, keys))) << "dv";
}

/// Whom a problem's strange rows concern.
class Reach {
 public:
  Reach(Problem& problem, const Chosen& strange_keys, const Chosen& strange_queries)
      : p_(problem.params()), rows_(p_.batch * p_.queries), gradients_(p_.batch * p_.keys) {
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t i = 0; i < p_.queries; ++i) {
        bool reached = strange_queries(b, i);
        for (std::int64_t j = 0; j < p_.keys; ++j)
          reached = reached || (strange_keys(b, j) && testing::sees(p_, b, i, j));
        rows_[b * p_.queries + i] = reached;
        for (std::int64_t j = 0; reached && j < p_.keys; ++j)
          if (testing::sees(p_, b, i, j)) gradients_[b * p_.keys + j] = true;
      }
  }

  /// A row that is strange itself or sees a strange key.
  bool row(std::int64_t b, std::int64_t i) const { return rows_[b * p_.queries + i]; }
  /// A key that some such row sees. A strange key that nobody sees is not reached.
  bool gradient(std::int64_t b, std::int64_t j) const { return gradients_[b * p_.keys + j]; }

 private:
  AttentionParams p_;
  std::vector<bool> rows_, gradients_;
};

const Chosen kNobody = [](std::int64_t, std::int64_t) { return false; };

/// Poisons the chosen keys; everything out of their reach keeps its bits.
void expect_keys_reach_no_further(const ProblemSpec& spec, const Chosen& keys) {
  SCOPED_TRACE(describe(spec));
  Problem clean(spec);
  run(clean);
  const Reach reach(clean, keys, kNobody);
  const auto row_is_clean = [&](auto b, auto i) { return !reach.row(b, i); };
  const auto key_is_clean = [&](auto b, auto j) { return !reach.gradient(b, j); };
  for (const double strange : kStrange) {
    SCOPED_TRACE(strange);
    Problem dirty(spec);
    poison(dirty.k, keys, strange);
    poison(dirty.v, keys, strange);
    run(dirty);
    expect_same_where(dirty, clean, row_is_clean, key_is_clean);
    if (!std::isnan(strange)) continue;
    for (const double z : kept_rows(dirty.z, [&](auto b, auto i) { return reach.row(b, i); }))
      EXPECT_TRUE(std::isnan(z)) << "a NaN that is seen must show";
  }
}

ProblemSpec masked(std::int64_t queries, std::int64_t keys) {
  ProblemSpec spec;
  spec.queries = queries, spec.keys = keys, spec.head_dim = 9, spec.value_dim = 12;
  spec.batch = 2, spec.query_heads = 4, spec.key_heads = 2;
  return spec;
}

/// Runs body(spec) causal and not, and with what may stand beside any mask.
void for_each_setting(ProblemSpec spec, const std::function<void(const ProblemSpec&)>& body) {
  for (const bool causal : {true, false})
    for (const bool more : {false, true}) {
      spec.is_causal = causal;
      spec.with_sink_logits = more, spec.learned = more ? Learned::kToken : Learned::kNone;
      spec.type = more ? Type::kBFloat16 : Type::kFloat32;
      body(spec);
    }
}

TEST_P(Fused, PaddingReachesNothing) {
  for (const Ranges ranges : {Ranges::kLeft, Ranges::kRight, Ranges::kBoth, Ranges::kEmpty}) {
    ProblemSpec spec = masked(70, 130);
    spec.ranges = ranges;
    for_each_setting(spec, [](const ProblemSpec& each) {
      Problem problem(each);
      const AttentionParams p = problem.params();
      expect_keys_reach_no_further(each, [&](auto b, auto j) {
        return (p.key_start && j < p.key_start[b]) || (p.key_end && j >= p.key_end[b]);
      });
    });
  }
}

TEST_P(Fused, PaddingOfThePaddedQueriesOwnKeysReachesNothing) {
  ProblemSpec spec = masked(100, 100);  // rows whose own key is padding exclude nothing: z = y
  spec.ranges = Ranges::kBoth, spec.num_sink_keys = 2, spec.window = 30;
  for_each_setting(spec, [](const ProblemSpec& each) {
    Problem problem(each);
    const AttentionParams p = problem.params();
    expect_keys_reach_no_further(
        each, [&](auto b, auto j) { return j < p.key_start[b] || j >= p.key_end[b]; });
  });
}

TEST_P(Fused, AKeyOutsideTheWindowReachesNothing) {
  for (const std::int64_t window : {1, 5, 40, 100})
    for (const std::int64_t strange : {0, 3, 96, 140}) {
      ProblemSpec spec = masked(150, 153);
      spec.window = window, spec.batch = 1;
      for (const bool causal : {true, false}) {
        spec.is_causal = causal;
        expect_keys_reach_no_further(spec, [&](auto, auto j) { return j == strange; });
      }
    }
}

TEST_P(Fused, AKeyOutsideTheWindowReachesNothingBesideSinkKeys) {
  ProblemSpec spec = masked(150, 150);
  spec.window = 20, spec.num_sink_keys = 3;
  for_each_setting(spec, [](const ProblemSpec& each) {
    expect_keys_reach_no_further(each, [](auto, auto j) { return j == 3 || j == 60; });
  });
}

TEST_P(Fused, OtherDocumentsReachNothing) {
  for (const Packing packing : {Packing::kFew, Packing::kMany}) {
    ProblemSpec spec = masked(150, 160);
    spec.batch = 1, spec.packing = packing;
    for_each_setting(spec, [](const ProblemSpec& each) {
      Problem problem(each);
      const AttentionParams p = problem.params();
      const std::int64_t middle = p.documents / 2;
      expect_keys_reach_no_further(each, [&](auto, auto j) {
        return p.cu_seqlens[middle] <= j - p.own_offset && j - p.own_offset < 120;
      });
      expect_keys_reach_no_further(each, [](auto, auto j) { return j < 10; });  // owned by nobody
    });
  }
}

TEST_P(Fused, KeysAfterTheOwnReachNothing) {
  for (const std::int64_t strange : {1, 7, 8, 24, 95, 96, 120}) {
    ProblemSpec spec = masked(121, 121);
    spec.is_causal = true, spec.num_sink_keys = 100, spec.window = 8;  // sinks wait their turn too
    expect_keys_reach_no_further(spec, [&](auto, auto j) { return j == strange; });
  }
}

TEST_P(Fused, AnUnusedCacheReachesNothing) {
  ProblemSpec spec = masked(30, 100);
  spec.own_offset = 10, spec.is_causal = true;
  expect_keys_reach_no_further(spec, [](auto, auto j) { return j >= 40; });
  spec.queries = 1, spec.keys = 700, spec.own_offset = 500;  // decoding
  expect_keys_reach_no_further(spec, [](auto, auto j) { return j > 500; });
  spec.window = 50;
  expect_keys_reach_no_further(spec, [](auto, auto j) { return j <= 450 || j > 500; });
}

TEST_P(Fused, AStrangeQueryReachesOnlyTheKeysThatItSees) {
  ProblemSpec windowed = masked(150, 150), packed = masked(150, 150), cut = masked(90, 90);
  windowed.window = 20;
  packed.batch = 1, packed.packing = Packing::kFew;
  cut.ranges = Ranges::kLeft, cut.is_causal = true;  // the first rows see nothing
  const Chosen few = [](auto, auto i) { return i < 9 || i == 70; };
  for (const ProblemSpec& spec : {windowed, packed, cut}) {
    SCOPED_TRACE(describe(spec));
    Problem clean(spec), dirty(spec);
    for (Array* array : {&dirty.q, &dirty.dz}) poison(*array, few, kNan);
    run(clean);
    run(dirty);
    const Reach reach(clean, kNobody, few);
    expect_same_where(
        dirty, clean, [&](auto b, auto i) { return !few(b, i); },
        [&](auto b, auto j) { return !reach.gradient(b, j); });
  }
}

TEST_P(Fused, ARowWithoutAVisibleKeyIsZeroAndGivesNothing) {
  for (const bool with_sink : {false, true}) {
    ProblemSpec spec = masked(60, 60);
    spec.ranges = Ranges::kEmpty, spec.with_sink_logits = with_sink;  // the first sequence
    spec.learned = Learned::kHead;
    Problem problem(spec);
    run(problem);
    const testing::Tolerances tolerance = testing::fused_tolerances(problem);
    const Chosen blind = [](auto b, auto) { return b == 0; };
    for (const Array* array : {&problem.z, &problem.dq, &problem.dk, &problem.dv})
      for (const double value : kept_rows(*array, blind)) EXPECT_EQ(value, 0);
    for (const auto* rows : {&problem.c, &problem.dlearned_strength})
      for (const float value : kept_rows(*rows, problem.options, blind)) EXPECT_EQ(value, 0);
    for (std::int64_t h = 0; h < 4; ++h) {  // lse is the sink logit, or -inf
      double dlse = 0;
      for (std::int64_t i = 0; i < 60; ++i) {
        dlse += problem.dlse[h * 60 + i];
        if (!with_sink) {
          ASSERT_EQ(problem.lse[h * 60 + i], -INFINITY);
        } else {
          ASSERT_NEAR(problem.lse[h * 60 + i], problem.sink_logits[h], tolerance.lse);
        }
      }
      if (with_sink) {
        EXPECT_NEAR(problem.dsink_logits[h], dlse, tolerance.dsink_logits);
      }
    }
  }
}

TEST_P(Fused, AQueryThatDoesNotSeeItsOwnKeyExcludesNothing) {
  ProblemSpec spec = masked(50, 50);
  spec.ranges = Ranges::kRight, spec.is_causal = true, spec.learned = Learned::kScalar;
  Problem problem(spec), standard(spec);
  standard.learned_strength = {0};
  run(problem);
  run(standard);
  const Chosen padded = [&](auto b, auto i) { return i >= problem.key_end[b]; };
  EXPECT_FALSE(kept_rows(problem.z, padded).empty());
  EXPECT_TRUE(same_bits(kept_rows(problem.z, padded), kept_rows(standard.z, padded)));
  EXPECT_TRUE(same_bits(kept_rows(problem.dq, padded), kept_rows(standard.dq, padded)));
  for (const auto* rows : {&problem.c, &problem.dlearned_strength})
    for (const float value : kept_rows(*rows, problem.options, padded)) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace xsa::kernels
