// All options together: a cover of every pair of their values, and random mixes by seed.
//
//   XSA_RANDOM_CASES=5000 XSA_RANDOM_SEED=1 build/bin/test_kernels --gtest_filter='Options.*'
//
// soaks: that many random cases, from that seed on. A failure names its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/pairwise.h"
#include "xsa/base/rng.h"

namespace xsa::kernels {
namespace {

using testing::Layout;
using testing::Learned;
using testing::Packing;
using testing::ProblemSpec;
using testing::Ranges;
using testing::Values;

/// One option and how its n-th value is set.
struct Factor {
  int values;
  std::function<void(ProblemSpec&, int)> apply;
};

template <class Value, class Apply>
Factor factor(std::vector<Value> values, Apply apply) {
  const int count = static_cast<int>(values.size());
  return {count, [values = std::move(values), apply](ProblemSpec& spec, int n) {
            apply(spec, values[n]);
          }};
}

constexpr int kBeyondAllKeys = 100000;

/// Sizes are around those of vectors (4, 8, 16), panels (12, 24, 48), key blocks (96) and query
/// blocks (up to 192). Documents make the batch 1.
std::vector<Factor> factors() {
  struct Sizes {
    std::int64_t queries, more_keys;
  };
  struct Heads {
    std::int64_t query_heads, key_heads;
  };
  struct Dims {
    std::int64_t head_dim, value_dim;
  };
  const auto to = [](auto member) {
    return [member](ProblemSpec& spec, auto value) { spec.*member = value; };
  };
  return {
      factor<Sizes>(
          {{1, 0}, {1, 1500}, {7, 400}, {24, 3}, {95, 0}, {97, 1}, {130, 62}, {193, 0}, {260, 150}},
          [](ProblemSpec& spec, const Sizes& sizes) {
            spec.queries = sizes.queries;
            spec.keys = sizes.queries + sizes.more_keys;
          }),
      factor<std::int64_t>({0, 1, 5, 48, 110, kBeyondAllKeys}, to(&ProblemSpec::window)),
      factor<Dims>({{8, 8}, {7, 5}, {1, 33}, {64, 2}, {16, 24}, {65, 40}},
                   [](ProblemSpec& spec, const Dims& dims) {
                     spec.head_dim = dims.head_dim, spec.value_dim = dims.value_dim;
                   }),
      factor<Layout>({Layout::kDense, Layout::kTokenMajor, Layout::kPadded, Layout::kInnermost,
                      Layout::kExpanded},
                     to(&ProblemSpec::layout)),
      factor<Ranges>({Ranges::kAll, Ranges::kLeft, Ranges::kRight, Ranges::kBoth, Ranges::kEmpty},
                     to(&ProblemSpec::ranges)),
      factor<std::pair<Learned, double>>({{Learned::kNone, 1},
                                          {Learned::kNone, 0},
                                          {Learned::kNone, -0.7},
                                          {Learned::kScalar, 1},
                                          {Learned::kHead, 1},
                                          {Learned::kToken, 1}},
                                         [](ProblemSpec& spec, const auto& strength) {
                                           spec.learned = strength.first;
                                           spec.strength = strength.second;
                                         }),
      factor<std::int64_t>({0, 1, 4}, to(&ProblemSpec::num_sink_keys)),
      factor<Packing>({Packing::kNone, Packing::kFew, Packing::kMany}, to(&ProblemSpec::packing)),
      factor<Heads>({{2, 2}, {4, 2}, {3, 1}},
                    [](ProblemSpec& spec, const Heads& heads) {
                      spec.query_heads = heads.query_heads, spec.key_heads = heads.key_heads;
                    }),
      factor<Type>({Type::kFloat32, Type::kBFloat16, Type::kFloat16}, to(&ProblemSpec::type)),
      factor<Values>({Values::kOrdinary, Values::kPeaky, Values::kHostile},
                     to(&ProblemSpec::values)),
      factor<bool>({true, false}, to(&ProblemSpec::is_causal)),
      factor<bool>({true, false}, to(&ProblemSpec::with_sink_logits)),
      factor<bool>({true, false}, to(&ProblemSpec::with_dlse)),
      factor<bool>({true, false},
                   [](ProblemSpec& spec, bool smaller) {
                     if (!smaller) return;
                     spec.own_offset = (spec.keys - spec.queries) / 2;
                     spec.keys += 5;
                   }),
  };
}

ProblemSpec spec_of(const std::vector<Factor>& all, const std::vector<int>& row,
                    std::uint64_t seed) {
  ProblemSpec spec;
  for (std::size_t f = 0; f < all.size(); ++f) all[f].apply(spec, row[f]);
  spec.batch = spec.packing == Packing::kNone ? 2 : 1;
  spec.seed = seed;
  return spec;
}

std::vector<ProblemSpec> pairwise_specs() {
  const std::vector<Factor> all = factors();
  std::vector<int> values;
  for (const Factor& each : all) values.push_back(each.values);
  std::vector<ProblemSpec> specs;
  for (const std::vector<int>& row : testing::all_pairs(values))
    specs.push_back(spec_of(all, row, 1000 + specs.size()));
  return specs;
}

/// Sizes and options drawn together.
ProblemSpec random_spec(std::uint64_t seed) {
  Rng rng(seed);
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng.below(high - low + 1));
  };
  const auto maybe = [&](double chance) { return rng.uniform() < chance; };
  ProblemSpec spec;
  spec.seed = seed;
  spec.queries = maybe(0.2) ? number(1, 8) : number(1, 260);
  spec.keys = spec.queries + (maybe(0.4) ? 0 : number(0, maybe(0.1) ? 2000 : 210));
  spec.key_heads = number(1, 2);
  spec.query_heads = spec.key_heads * number(1, 3);
  spec.head_dim = maybe(0.1) ? number(1, 256) : number(1, 40);
  spec.value_dim = maybe(0.1) ? number(1, 256) : number(1, 40);
  spec.type = static_cast<Type>(number(0, 2));
  spec.layout = static_cast<Layout>(number(0, 4));
  spec.values = static_cast<Values>(number(0, 2));
  spec.is_causal = maybe(0.6);
  spec.strength = maybe(0.6) ? 1 : maybe(0.3) ? 0 : rng.normal();
  if (maybe(0.3)) spec.own_offset = number(0, spec.keys - spec.queries);
  if (maybe(0.5)) spec.window = maybe(0.5) ? number(1, 20) : number(1, 300);
  if (maybe(0.4)) spec.num_sink_keys = number(1, 9);
  spec.with_sink_logits = maybe(0.3);
  if (maybe(0.3)) spec.packing = static_cast<Packing>(number(1, 2));
  if (maybe(0.3)) spec.ranges = static_cast<Ranges>(number(1, 4));
  if (maybe(0.4)) spec.learned = static_cast<Learned>(number(1, 3));
  spec.with_dlse = maybe(0.5);
  spec.batch = spec.packing == Packing::kNone ? number(1, 3) : 1;
  return spec;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Options, EveryPairOfValuesMatchesTheReference) {
  for (const ProblemSpec& spec : pairwise_specs()) expect_all_match_reference(spec);
}

TEST(Options, RandomMixesMatchTheReference) {
  const std::uint64_t first = from_environment("XSA_RANDOM_SEED", 1);
#if defined(__SANITIZE_ADDRESS__)  // twenty times slower
  const std::uint64_t cases = from_environment("XSA_RANDOM_CASES", 10);
#else
  const std::uint64_t cases = from_environment("XSA_RANDOM_CASES", 80);
#endif
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE("repeat with XSA_RANDOM_CASES=1 XSA_RANDOM_SEED=" + std::to_string(seed));
    expect_all_match_reference(random_spec(seed));
  }
}

}  // namespace
}  // namespace xsa::kernels
