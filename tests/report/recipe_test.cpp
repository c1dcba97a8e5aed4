#include "xsa/report/recipe.h"

#include <gmock/gmock.h>

namespace xsa::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Comparison comparison_of(const char* standard, const char* exclusive) {
  Comparison comparison{"folder", {{"name", "it's a demo"}}, {}};
  for (const char* const attention : {"standard", "exclusive"}) {
    Run run;
    run.record = {attention, 1, attention, nullptr, nullptr};
    run.recipe = Json::parse(attention == std::string("standard") ? standard : exclusive);
    comparison.runs.push_back(run);
  }
  return comparison;
}

TEST(Settings, MarkWhereTheTwoDiffer) {
  const std::vector<Setting> settings =
      settings_of(comparison_of(R"({"model": {"attention": "standard", "width": 8}})",
                                R"({"model": {"attention": "exclusive", "width": 8, "new": 1}})"));
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].key, "model.attention");
  EXPECT_EQ(settings[0].standard, "\"standard\"");
  EXPECT_EQ(settings[0].exclusive, "\"exclusive\"");
  EXPECT_TRUE(settings[0].differs);
  EXPECT_FALSE(settings[1].differs);
  EXPECT_EQ(settings[2].standard, "–");
  EXPECT_TRUE(settings[2].differs);
}

TEST(RepeatCommand, SpellsOutTheRecipeQuotedForTheShell) {
  const std::string recipe = R"({"model": {"attention": "standard", "width": 8},
                                 "data": {"source": "my texts; rm -r ~"}, "train": {"lr": 0.002}})";
  EXPECT_EQ(repeat_command(comparison_of(recipe.c_str(), recipe.c_str())),
            "xsa compare --name='it'\\''s a demo' --seeds=1 \\\n"
            "  --model.width=8 \\\n"
            "  --data.source='my texts; rm -r ~' \\\n"
            "  --train.lr=0.002");
}

TEST(RepeatCommand, PrefersTheOneThatWasGiven) {
  Comparison comparison = comparison_of("{}", "{}");
  comparison.info["command"] = "xsa compare demo --seeds 3";
  EXPECT_EQ(repeat_command(comparison), "xsa compare demo --seeds 3");
}

}  // namespace
}  // namespace xsa::report
