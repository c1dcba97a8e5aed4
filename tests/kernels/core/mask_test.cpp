#include "xsa/kernels/core/mask.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/mask_rule.h"
#include "xsa/base/rng.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {
namespace {

TEST(VisibleKeys, AreTheRuleOfTheSchemaForEveryMixOfOptions) {
  Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    AttentionParams p;
    p.queries = 1 + static_cast<std::int64_t>(rng.below(9));
    p.own_offset = static_cast<std::int64_t>(rng.below(4));
    p.keys = p.queries + p.own_offset + static_cast<std::int64_t>(rng.below(3));
    p.is_causal = rng.below(2);
    p.window = static_cast<std::int64_t>(rng.below(5));
    p.num_sink_keys = static_cast<std::int64_t>(rng.below(3));
    const auto cut = [&] { return static_cast<std::int32_t>(rng.below(p.queries + 1)); };
    std::array<std::int32_t, 4> cu{0, cut(), cut(), static_cast<std::int32_t>(p.queries)};
    if (cu[1] > cu[2]) std::swap(cu[1], cu[2]);  // equal ones: an empty document
    if (rng.below(2)) p.cu_seqlens = cu.data(), p.documents = 3;
    const std::int64_t start = static_cast<std::int64_t>(rng.below(p.keys + 1));
    const std::int64_t end = start + static_cast<std::int64_t>(rng.below(p.keys + 1 - start));
    if (rng.below(2)) p.key_start = &start;
    if (rng.below(2)) p.key_end = &end;
    for (std::int64_t i = 0; i < p.queries; ++i) {
      const VisibleKeys keys = visible_keys(p, 0, i);
      for (std::int64_t j = 0; j < p.keys; ++j)
        ASSERT_EQ(contains(keys, j), testing::sees(p, 0, i, j))
            << "round " << round << " i " << i << " j " << j;
    }
  }
}

TEST(VisibleKeys, SinkKeysAreNotSeenBeforeTheirTime) {
  AttentionParams p;
  p.queries = p.keys = 8, p.num_sink_keys = 4, p.window = 1, p.is_causal = true;
  EXPECT_FALSE(contains(visible_keys(p, 0, 1), 2));
  EXPECT_TRUE(contains(visible_keys(p, 0, 7), 2));
}

}  // namespace
}  // namespace xsa::kernels
