// The decode path against the double reference, on every instruction set that this machine has.
#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/decode_fixture.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"
#include "xsa/base/rng.h"
#include "xsa/kernels/core/mask.h"

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

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Decode, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& each) { return each.param; });

void expect_matches_reference(Problem& problem) {
  decode(problem);
  const ReferenceForward out = reference_forward(problem.params());
  const testing::Tolerances tolerance = fused_tolerances(problem);
  EXPECT_TRUE(is_near(problem.z.values(), out.z, tolerance.z)) << "z";
  EXPECT_TRUE(is_near(doubles(problem.lse), out.lse, tolerance.lse)) << "lse";
  EXPECT_TRUE(is_near(doubles(problem.c), out.c, tolerance.c)) << "c";
  EXPECT_TRUE(problem.z.gaps_untouched());
}

void expect_matches_reference(const ProblemSpec& spec) {
  SCOPED_TRACE(describe(spec));
  Problem problem(spec);
  expect_matches_reference(problem);
}

void expect_same_outputs(const Problem& actual, const Problem& expected) {
  EXPECT_TRUE(same_bits(actual.z.values(), expected.z.values())) << "z";
  EXPECT_TRUE(same_bits(actual.lse, expected.lse)) << "lse";
  EXPECT_TRUE(same_bits(actual.c, expected.c)) << "c";
}

/// Fills key row (b, every head, s) of k and v.
void set_key(Problem& problem, std::int64_t b, std::int64_t s, double value) {
  for (Array* array : {&problem.k, &problem.v})
    for (std::int64_t h = 0; h < array->sizes[1]; ++h)
      for (std::int64_t d = 0; d < array->sizes[3]; ++d) array->set(b, h, s, d, value);
}

TEST_P(Decode, EqualsTheReferenceForEveryNumberOfQueriesAndLength) {
  // Tiles of 4, 8, 16 keys, steps of 32, chunks of 256, splits of 1024.
  for (const std::int64_t keys : {1,  2,  3,   4,   5,   7,   8,    9,    15,   16,   17,  31,
                                  33, 63, 255, 256, 257, 289, 1023, 1024, 1025, 1293, 3001})
    for (std::int64_t queries = 1; queries <= std::min<std::int64_t>(8, keys); ++queries) {
      ProblemSpec spec = decoding(queries, keys);
      spec.is_causal = (queries + keys) % 3 != 0, spec.seed = keys;
      expect_matches_reference(spec);
    }
}

TEST_P(Decode, EqualsTheReferenceForGroups) {
  for (const auto& [batch, query_heads, key_heads] : std::vector<std::array<std::int64_t, 3>>{
           {2, 3, 3}, {1, 6, 2}, {2, 16, 2}, {3, 5, 1}, {1, 40, 1}})
    for (const std::int64_t queries : {1, 2, 3, 8})
      for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16}) {
        ProblemSpec spec = decoding(queries, 300, 16);
        spec.batch = batch, spec.query_heads = query_heads, spec.key_heads = key_heads;
        spec.type = type, spec.strength = 0.5;
        expect_matches_reference(spec);
      }
}

TEST_P(Decode, EqualsTheReferenceForEveryHeadDimension) {
  for (const auto& [head_dim, value_dim] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                          {1, 256},
                                                          {2, 3},
                                                          {5, 7},
                                                          {16, 31},
                                                          {33, 32},
                                                          {64, 64},
                                                          {80, 48},
                                                          {128, 112},
                                                          {129, 130},
                                                          {255, 1},
                                                          {256, 256}})
    for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
      for (const std::int64_t queries : {1, 2, 7}) {
        ProblemSpec spec = decoding(queries, 70);
        spec.head_dim = head_dim, spec.value_dim = value_dim, spec.type = type;
        expect_matches_reference(spec);
      }
}

TEST_P(Decode, EqualsTheReferenceForEveryLayoutTypeAndKindOfValues) {
  std::uint64_t seed = 0;
  for (const Layout layout : {Layout::kDense, Layout::kTokenMajor, Layout::kPadded,
                              Layout::kInnermost, Layout::kExpanded})
    for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
      for (const Values values : {Values::kOrdinary, Values::kPeaky, Values::kHostile}) {
        ProblemSpec spec = decoding(3, 1100, 16);
        spec.batch = 2, spec.query_heads = 4, spec.key_heads = 2;
        spec.layout = layout, spec.type = type, spec.values = values;
        spec.is_causal = ++seed % 3 != 0, spec.seed = seed;
        expect_matches_reference(spec);
      }
}

/// Case n of 27 in which every pair of levels (0, 1, 2) of any two of 13 factors occurs: an
/// orthogonal array, whose columns are the directions of Z_3^3.
class Levels {
 public:
  explicit Levels(std::int64_t n) : at_{n / 9, n / 3 % 3, n % 3} {}
  std::int64_t operator[](std::int64_t factor) const {
    static constexpr std::int64_t kDirections[13][3] = {
        {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {1, 2, 0}, {1, 0, 1}, {1, 0, 2},
        {0, 1, 1}, {0, 1, 2}, {1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}};
    const auto& direction = kDirections[factor];
    return (at_[0] * direction[0] + at_[1] * direction[1] + at_[2] * direction[2]) % 3;
  }

 private:
  std::int64_t at_[3];
};

Problem covering_case(std::int64_t n) {
  const Levels level(n);
  const auto pick = [&](std::int64_t factor, auto... values) {
    return std::array{values...}[level[factor]];
  };
  ProblemSpec spec;
  spec.queries = pick(0, 1, 3, 8), spec.keys = pick(1, 17, 300, 2500);
  spec.batch = level[2] == 2 ? 1 : 2;  // packed documents are one sequence
  spec.key_heads = 2, spec.query_heads = 2 * pick(3, 1, 3, 8);
  spec.head_dim = 16, spec.value_dim = 24;
  spec.type = pick(4, Type::kFloat32, Type::kBFloat16, Type::kFloat16);
  spec.layout = pick(5, Layout::kDense, Layout::kTokenMajor, Layout::kInnermost);
  spec.is_causal = level[6] != 0;
  spec.strength = pick(7, 1.0, 0.0, -1.5);
  spec.own_offset = pick(8, std::int64_t{-1}, std::int64_t{0}, spec.keys / 2);
  spec.seed = n + 1;
  Problem problem(spec);
  AttentionParams& options = problem.options;
  options.window = pick(9, 0, 2, 270);
  options.num_sink_keys = pick(10, 0, 3, 260);
  const std::int64_t heads = spec.query_heads, queries = spec.queries;
  if (level[2] == 2) {
    const std::int32_t last = static_cast<std::int32_t>(queries), cut = last / 3;
    problem.cu_seqlens = {0, cut, cut, last};  // one of them is empty
  } else if (level[2] == 1) {
    problem.key_start = {5, 0};
    problem.key_end = {spec.keys, spec.keys - 4};
  }
  Rng rng(n);
  const auto normal = [&](std::int64_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(rng.normal());
    return values;
  };
  if (level[11] == 1) problem.sink_logits = normal(heads);
  if (level[11] == 2) problem.sink_logits.assign(heads, -20), problem.sink_logits[0] = 40;
  if (level[12] == 1) {
    problem.learned_strength = normal(heads);
    options.learned_strength_stride = {0, 1, 0};
  } else if (level[12] == 2) {
    problem.learned_strength = normal(spec.batch * heads * queries);
    options.learned_strength_stride = {heads * queries, queries, 1};
  }
  if (level[12] != 0) options.strength = 4;  // replaced; the tolerance takes it for the largest
  return problem;
}

TEST_P(Decode, EqualsTheReferenceForEveryPairOfOptions) {
  for (std::int64_t n = 0; n < 27; ++n) {
    SCOPED_TRACE(n);
    Problem problem = covering_case(n);
    expect_matches_reference(problem);
  }
}

TEST_P(Decode, WhatNoQuerySeesNeverReachesAResult) {
  for (std::int64_t n = 0; n < 27; ++n) {
    SCOPED_TRACE(n);
    Problem clean = covering_case(n), dirty = covering_case(n);
    const AttentionParams params = clean.params();
    for (std::int64_t b = 0; b < params.batch; ++b)
      for (std::int64_t s = 0; s < params.keys; ++s) {
        bool seen = false;
        for (std::int64_t i = 0; i < params.queries; ++i)
          seen = seen || contains(visible_keys(params, b, i), s);
        if (!seen) set_key(dirty, b, s, s % 2 ? NAN : INFINITY);
      }
    decode(clean);
    decode(dirty);
    expect_same_outputs(dirty, clean);
  }
}

TEST_P(Decode, ALaterTokenChangesNothingBeforeIt) {
  for (const double strange : {100.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    for (const std::int64_t keys : {20, 1026}) {  // in the second, a split begins among the queries
      ProblemSpec spec = decoding(8, keys);
      spec.query_heads = 3;
      Problem before(spec), after(spec);
      set_key(after, 0, keys - 4, strange);
      decode(before);
      decode(after);
      for (std::int64_t row = 0; row < 3 * 8; ++row) {
        const bool sees = row % 8 >= 4;
        EXPECT_EQ(sees, after.lse[row] != before.lse[row] || std::isnan(after.lse[row])) << row;
        for (std::int64_t d = 0; d < 16; ++d) {
          const double z = after.z.get(0, row / 8, row % 8, d);
          if (sees)
            EXPECT_EQ(std::isfinite(z), std::isfinite(strange));
          else
            EXPECT_EQ(z, before.z.get(0, row / 8, row % 8, d));
        }
      }
    }
}

TEST_P(Decode, SinksAndWindowsOfNeighboursMayMeetWhereARowsOwnDoNot) {
  for (const std::int64_t own_offset : {0, 5, 20})
    for (const std::int64_t sinks : {3, 10})
      for (const bool causal : {true, false}) {
        ProblemSpec spec = decoding(8, 40);
        spec.own_offset = own_offset, spec.is_causal = causal;
        Problem clean(spec), dirty(spec);
        clean.options.window = dirty.options.window = 2;
        clean.options.num_sink_keys = dirty.options.num_sink_keys = sinks;
        expect_matches_reference(clean);
        const std::int64_t strange = own_offset + 4;  // seen by three queries, or as a sink
        set_key(dirty, 0, strange, NAN);
        decode(dirty);
        for (std::int64_t t = 0; t < 8; ++t) {
          const bool sees = contains(visible_keys(clean.params(), 0, t), strange);
          for (std::int64_t d = 0; d < 16; ++d) {
            const double z = dirty.z.get(0, 0, t, d);
            EXPECT_TRUE(sees ? std::isnan(z) : z == clean.z.get(0, 0, t, d)) << t;
          }
        }
      }
}

TEST_P(Decode, BitsDoNotDependOnWorkers) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16}) {
    ProblemSpec spec = decoding(2, 5000);
    spec.batch = 2, spec.query_heads = 6, spec.key_heads = 2, spec.type = type;
    Problem one(spec);
    decode(one);
    for (const std::int64_t workers : {2, 3, 7}) {
      Problem more(spec);
      decode(more, workers);
      expect_same_outputs(more, one);
    }
  }
}

TEST_P(Decode, BitsDoNotDependOnTheBatch) {
  ProblemSpec spec = decoding(2, 3000);
  spec.batch = 3, spec.query_heads = 2;
  Problem batch(spec);
  batch.key_start = {2900, 0, 7};  // neighbours of other lengths
  batch.key_end = {3000, 2000, 2990};
  decode(batch);
  spec.batch = 1;
  Problem alone(spec);
  alone.key_start = {7}, alone.key_end = {2990};
  for (const auto input : {&Problem::q, &Problem::k, &Problem::v})
    (alone.*input).for_each([&](auto, auto h, auto t, auto d) {
      (alone.*input).set(0, h, t, d, (batch.*input).get(2, h, t, d));
    });
  decode(alone);
  const std::vector<double> all = batch.z.values();
  EXPECT_TRUE(same_bits(alone.z.values(), {all.end() - 2 * 2 * 16, all.end()}));
  EXPECT_TRUE(same_bits(alone.lse, {batch.lse.end() - 4, batch.lse.end()}));
}

TEST_P(Decode, EqualsTheLastRowsOfTheWhole) {
  ProblemSpec spec = decoding(1500, 1500);
  spec.query_heads = 2;
  Problem whole(spec);
  decode(whole);
  for (const std::int64_t queries : {1, 5, 8}) {
    spec.queries = queries;
    Problem last(spec);
    for (const auto input : {&Problem::k, &Problem::v})
      (last.*input).for_each([&](auto... at) {
        (last.*input).set(at..., (whole.*input).get(at...));
      });
    std::vector<double> z, lse;
    last.q.for_each([&](auto b, auto h, auto t, auto d) {
      last.q.set(b, h, t, d, whole.q.get(b, h, 1500 - queries + t, d));
      z.push_back(whole.z.get(b, h, 1500 - queries + t, d));
      if (d == 0) lse.push_back(whole.lse[(h + 1) * 1500 - queries + t]);
    });
    decode(last);
    EXPECT_TRUE(is_near(last.z.values(), z, 2 * fused_tolerances(whole).z));
    EXPECT_TRUE(is_near(doubles(last.lse), lse, 2 * fused_tolerances(whole).lse));
  }
}

TEST_P(Decode, StrengthZeroLeavesYToTheBit) {
  ProblemSpec spec = decoding(3, 1100);
  Problem nothing_to_exclude(spec);
  nothing_to_exclude.options.eps = 1e30;  // c is 0 in fp32, so that z is y
  decode(nothing_to_exclude);
  spec.strength = 0;
  Problem standard(spec);
  decode(standard);
  EXPECT_TRUE(same_bits(standard.z.values(), nothing_to_exclude.z.values()));
  EXPECT_NE(standard.c[2], 0);  // a diagnostic that standard attention has too
}

TEST_P(Decode, AnInvisibleOwnKeyExcludesNothing) {
  ProblemSpec spec = decoding(2, 40);
  Problem exclusive(spec), standard(spec);
  standard.options.strength = 0;
  for (Problem* problem : {&exclusive, &standard}) {
    problem->key_end = {30};
    decode(*problem);
  }
  EXPECT_TRUE(same_bits(exclusive.z.values(), standard.z.values()));
  EXPECT_TRUE(same_bits(exclusive.c, {0, 0}));
}

TEST_P(Decode, ARowWithoutKeysIsZeroAndItsLseTheSinkLogit) {
  for (const bool sink : {false, true}) {
    Problem problem(decoding(2, 40));
    problem.key_start = {39};  // the second query's own key
    if (sink) problem.sink_logits = {3.25f};
    decode(problem);
    EXPECT_EQ(problem.lse[0], sink ? 3.25f : -INFINITY);
    EXPECT_EQ(problem.c[0], 0);
    for (std::int64_t d = 0; d < 16; ++d) EXPECT_EQ(problem.z.get(0, 0, 0, d), 0);
    EXPECT_TRUE(std::isfinite(problem.lse[1]));
  }
}

TEST_P(Decode, HugeAndTinyValuesStayFinite) {
  for (const double size : {1e30, 1e19, 1e-10, 1e-25, 0.0}) {
    Problem problem(decoding(2, 1100));
    problem.v.for_each([&](auto... at) { problem.v.set(at..., size * problem.v.get(at...)); });
    decode(problem);
    const ReferenceForward out = reference_forward(problem.params());
    EXPECT_TRUE(is_near(problem.z.values(), out.z, 1e-5 * problem.v.largest_norm())) << size;
    EXPECT_TRUE(is_near(doubles(problem.c), out.c, 1e-4)) << size;
  }
}

TEST_P(Decode, EmptySizesAreFine) {
  ProblemSpec spec = decoding(0, 5);
  Problem no_queries(spec);
  decode(no_queries);
  spec.queries = 2, spec.batch = 0;
  Problem no_batch(spec);
  decode(no_batch);
}

}  // namespace
}  // namespace xsa::kernels
