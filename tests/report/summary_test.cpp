#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/support/temp_folder.h"
#include "xsa/report/comparison.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

using testing::error_of;

RunRecord run(const char* attention, std::int64_t seed, Json summary, Json diagnose = nullptr) {
  return {attention, seed, "a-folder", std::move(summary), std::move(diagnose)};
}

Json losses(double loss) { return {{"validation_loss", loss}}; }

TEST(Summary, TakesMeanSampleSpreadAndValuesOverSeeds) {
  const Json summary =
      summarize_runs({run("standard", 7, losses(2)), run("standard", 8, losses(4)),
                      run("standard", 9, losses(6)), run("exclusive", 7, losses(1)),
                      run("exclusive", 8, losses(3.5)), run("exclusive", 9, losses(4.5))});
  const Json& standard = summary["results"]["standard"]["validation_loss"];
  EXPECT_DOUBLE_EQ(standard["mean"].get<double>(), 4);
  EXPECT_DOUBLE_EQ(standard["spread"].get<double>(), 2);  // sqrt((4 + 0 + 4) / 2)
  EXPECT_EQ(standard["values"], Json::parse("[2.0, 4.0, 6.0]"));
  const Json& difference = summary["difference"]["validation_loss"];
  EXPECT_EQ(difference["values"], Json::parse("[-1.0, -0.5, -1.5]"));
  EXPECT_DOUBLE_EQ(difference["mean"].get<double>(), -1);
  EXPECT_DOUBLE_EQ(difference["spread"].get<double>(), 0.5);
}

TEST(Summary, PairsRunsBySeedWhateverTheirOrder) {
  const Json summary =
      summarize_runs({run("exclusive", 2, losses(20)), run("standard", 1, losses(1)),
                      run("standard", 2, losses(2)), run("exclusive", 1, losses(10))});
  EXPECT_EQ(summary["difference"]["validation_loss"]["values"], Json::parse("[18.0, 9.0]"));
}

TEST(Summary, HasNoSpreadWithOneSeed) {
  const Json summary =
      summarize_runs({run("standard", 1, losses(2)), run("exclusive", 1, losses(1))});
  EXPECT_EQ(summary["difference"]["validation_loss"]["spread"], 0.0);
}

TEST(Summary, LeavesOutWhatIsMissingOrNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Json summary =
      summarize_runs({run("standard", 1, losses(2)), run("standard", 2, losses(nan)),
                      run("standard", 3, Json::object()), run("exclusive", 1, losses(1)),
                      run("exclusive", 2, losses(1))});
  const Json& standard = summary["results"]["standard"]["validation_loss"];
  EXPECT_EQ(standard["values"], Json::parse("[2.0, null, null]"));
  EXPECT_EQ(standard["mean"], 2.0);
  EXPECT_EQ(summary["difference"]["validation_loss"]["values"], Json::parse("[-1.0, null, null]"));
  const Json& speed = summary["results"]["standard"]["tokens_per_s"];
  EXPECT_TRUE(speed["mean"].is_null());
  EXPECT_TRUE(speed["spread"].is_null());
}

TEST(Summary, MeansFigureOneOverLayers) {
  const Json diagnose = Json::parse(
      R"({"layers": [{"layer": 0, "value_cosine": 0.1}, {"layer": 1, "value_cosine": 0.4}]})");
  const Json summary = summarize_runs({run("standard", 1, losses(2), diagnose)});
  const Json& standard = summary["results"]["standard"];
  EXPECT_DOUBLE_EQ(standard["value_cosine"]["mean"].get<double>(), 0.25);
  EXPECT_TRUE(standard["attention_diagonal"]["mean"].is_null());
  EXPECT_TRUE(summary["results"]["exclusive"]["value_cosine"]["mean"].is_null());
}

TEST(Summary, RefusesAnUnknownAttentionAndARunGivenTwice) {
  EXPECT_THAT(error_of([] { summarize_runs({run("linear", 1, losses(2))}); }),
              ::testing::HasSubstr("expected attention 'standard' or 'exclusive', got 'linear'"));
  EXPECT_THAT(error_of([] {
                summarize_runs({run("standard", 1, losses(2)), run("standard", 1, losses(3))});
              }),
              ::testing::HasSubstr("a second run with attention 'standard' and seed 1"));
}

TEST(FormatNumber, GroupsThousandsAndSignsAndShowsWhatIsAbsent) {
  EXPECT_EQ(format_number(1234567.891, 2), "1,234,567.89");
  EXPECT_EQ(format_number(999.4, 0), "999");
  EXPECT_EQ(format_number(-1000, 0), "−1,000");
  EXPECT_EQ(format_number(0.5, 1, true), "+0.5");
  EXPECT_EQ(format_number(-0.00001, 3, true), "0.000");
  EXPECT_EQ(format_number(std::nan(""), 3), "–");
  EXPECT_EQ(format_number(-std::numeric_limits<double>::infinity(), 3, true), "–");
}

}  // namespace
}  // namespace xsa::report
