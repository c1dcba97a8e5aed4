#include "xsa/base/suggest.h"

#include <gtest/gtest.h>

namespace xsa {
namespace {

const std::vector<std::string> kNames{"lr", "steps", "batch_size", "warmup_steps"};

TEST(DidYouMean, NamesTheCandidateWithTheFewestEdits) {
  EXPECT_EQ(did_you_mean("step", kNames), " (did you mean 'steps'?)");
  EXPECT_EQ(did_you_mean("batchsize", kNames), " (did you mean 'batch_size'?)");
  EXPECT_EQ(did_you_mean("warmup_setps", kNames), " (did you mean 'warmup_steps'?)");
  EXPECT_EQ(did_you_mean("rl", kNames), " (did you mean 'lr'?)");
}

TEST(DidYouMean, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(did_you_mean("temperature", kNames), "");
  EXPECT_EQ(did_you_mean("step", {}), "");
}

TEST(DidYouMean, TakesTheFirstOfEquallyNearOnes) {
  EXPECT_EQ(did_you_mean("cat", {"car", "can"}), " (did you mean 'car'?)");
}

}  // namespace
}  // namespace xsa
