#include "xsa/bench/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace xsa::bench {
namespace {

using ::testing::HasSubstr;

BlockConfig tiny() {
  return {.lengths = {8, 16},
          .batch = 2,
          .width = 16,
          .heads = 2,
          .head_dim = 8,
          .rounds = 2,
          .round_s = 0,
          .threads = 1};
}

TEST(BlockBench, MeasuresEveryLengthForwardAndWithBackward) {
  std::int64_t rounds = 0;
  const Json result =
      measure_block(tiny(), {[&](std::int64_t done, std::int64_t total, const std::string&) {
                      EXPECT_EQ(done, ++rounds);
                      EXPECT_EQ(total, 8);
                    }});
  EXPECT_EQ(rounds, 8);
  ASSERT_EQ(result.at("results").size(), 4);
  for (const Json& each : result.at("results")) {
    EXPECT_GT(each.at("exclusive").at("tokens_per_s").at("median"), 0);
    EXPECT_GT(each.at("time_ratio").at("median"), 0);
    EXPECT_LE(each.at("time_ratio").at("quartiles").at(0),
              each.at("time_ratio").at("quartiles").at(1));
  }
  EXPECT_EQ(result.at("results").at(1).at("mode"), "forward+backward");
  EXPECT_EQ(result.at("results").at(2).at("length"), 16);
}

TEST(BlockBench, DividesTheTimeWithXsaByTheTimeWithout) {
  BlockConfig config = tiny();
  config.rounds = 1;  // its medians are the one measurement
  const Json result = measure_block(config);
  for (const Json& each : result.at("results")) {
    const auto rate = [&](const char* attention) {
      return each.at(attention).at("tokens_per_s").at("median").get<double>();
    };
    EXPECT_NEAR(each.at("time_ratio").at("median").get<double>(),
                rate("standard") / rate("exclusive"), 1e-9);
  }
}

// q, k, v, z, lse, c: what standard attention keeps is what the exclusion needs.
TEST(BlockBench, FindsTheSameMemoryWithXsaAsWithout) {
  for (const char* type : {"float32", "bfloat16"}) {
    BlockConfig config = tiny();
    config.type = type;
    const Json result = measure_block(config);
    for (const Json& each : result.at("results")) {
      EXPECT_EQ(each.at("memory_ratio"), 1) << type << " " << each;
      // At the least the weights, the input and the output are there.
      const std::int64_t weights = 12 * 16 * 16 + 3 * 16 + 256 * 16;
      const std::int64_t size = std::string_view(type) == "float32" ? 4 : 2;
      EXPECT_GT(each.at("standard").at("peak_bytes"), size * weights);
    }
    EXPECT_LT(result.at("results").at(0).at("standard").at("peak_bytes"),
              result.at("results").at(1).at("standard").at("peak_bytes"));
  }
}

TEST(BlockBench, RefusesWhatMakesNoBlock) {
  const auto error = [](const std::function<void(BlockConfig&)>& change) {
    BlockConfig config = tiny();
    change(config);
    return xsa::testing::error_of<UsageError>([&] { measure_block(config); });
  };
  EXPECT_THAT(error([](BlockConfig& c) { c.type = "float16"; }), HasSubstr("--dtype"));
  EXPECT_THAT(error([](BlockConfig& c) { c.lengths = {1}; }), HasSubstr("--lengths"));
  EXPECT_THAT(error([](BlockConfig& c) { c.lengths = {}; }), HasSubstr("--lengths"));
  EXPECT_THAT(error([](BlockConfig& c) { c.lengths = {8, 16, 8}; }), HasSubstr("8 twice"));
  EXPECT_THAT(error([](BlockConfig& c) { c.head_dim = 7; }), HasSubstr("head_dim"));
  EXPECT_THAT(error([](BlockConfig& c) { c.threads = 100'000'000'000; }), HasSubstr("--threads"));
  EXPECT_THAT(error([](BlockConfig& c) { c.rounds = 5'000'000'000'000; }), HasSubstr("--rounds"));
  EXPECT_THAT(error([](BlockConfig& c) { c.batch = c.lengths[0] = 4'294'967'296; }),
              HasSubstr("--batch"));
  EXPECT_THAT(error([](BlockConfig& c) { c.width = 100'000'000'000; }), HasSubstr("parameters"));
}

TEST(BlockBench, ShowsATableWithARatioForEachMeasurement) {
  const std::string table = block_table(measure_block(tiny()));
  EXPECT_THAT(table, HasSubstr("width 16, 2 heads of 8; batch 2, float32"));
  EXPECT_THAT(table, HasSubstr("memory x 1.0000"));
  EXPECT_THAT(table, HasSubstr("█"));
}

}  // namespace
}  // namespace xsa::bench
