#include "xsa/study/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"

namespace xsa::study {
namespace {

using ::testing::HasSubstr;

train::RunConfig recipe() {
  train::RunConfig config;
  config.train.steps = 100;
  config.train.batch_size = 6;
  config.train.accumulation = 4;
  return config;
}

TEST(Plan, CountsTokensAndFlopsOfTheWholeTraining) {
  const Plan made = plan(recipe(), {});
  EXPECT_EQ(made.sequences_per_step, 24);
  EXPECT_EQ(made.tokens_per_step(), 24 * 256);
  EXPECT_EQ(made.tokens(), 100 * 24 * 256);
  EXPECT_EQ(made.training_flops_per_token, 3 * made.forward_flops_per_token);
  EXPECT_DOUBLE_EQ(made.flops(), made.tokens() * made.training_flops_per_token);
}

TEST(Plan, TakesTheFlopsOverWhatTheDevicesReach) {
  const Plan made = plan(recipe(), {.count = 2, .peak_tflops = 0.5, .mfu = 0.25});
  EXPECT_DOUBLE_EQ(made.hours(), made.flops() / (2 * 0.5e12 * 0.25) / 3600);
  EXPECT_FALSE(made.device_memory_bytes);
  EXPECT_DOUBLE_EQ(plan(recipe(), {.gpu = "h100", .mfu = 1}).hours(),
                   made.flops() / 494.7e12 / 3600);
  EXPECT_EQ(plan(recipe(), {.gpu = "H100"}).peak_tflops, 494.7);
}

TEST(Plan, TakesThePeakOfThePrecisionThatItsMemoryIsCountedIn) {
  const std::vector<std::pair<std::string, double>> tf32 = {
      {"a100", 156},
      {"h100", 494.7},
      {"h200", 494.7},
      {"b200", 1125}};  // NVIDIA's data sheets, dense
  ASSERT_EQ(gpus().size(), tf32.size());
  for (const auto& [gpu, tflops] : tf32) {
    const Plan made = plan(recipe(), {.gpu = gpu});
    EXPECT_EQ(made.peak_tflops, tflops) << gpu;
    EXPECT_EQ(to_json(made).at("peak_precision"), "TF32");
    EXPECT_EQ(made.memory.weights, 4 * made.parameters) << "fp32";
  }
  EXPECT_FALSE(to_json(plan(recipe(), {.peak_tflops = 1})).contains("peak_precision"));
}

TEST(Plan, SharesAStepsPassesAndSumsGradientsInARing) {
  const Plan one = plan(recipe(), {}), four = plan(recipe(), {.count = 4});
  EXPECT_EQ(one.load.passes, 4);
  EXPECT_EQ(four.load.passes, 1);
  EXPECT_EQ(four.tokens_per_step(), one.tokens_per_step());
  EXPECT_EQ(one.traffic_bytes_per_step, 0);
  EXPECT_DOUBLE_EQ(four.traffic_bytes_per_step, 1.5 * 4 * static_cast<double>(four.parameters));
}

TEST(Plan, RefusesWhatCannotTrain) {
  const auto error = [](const train::RunConfig& config, const Devices& devices) {
    return xsa::testing::error_of<UsageError>([&] { plan(config, devices); });
  };
  EXPECT_THAT(error(recipe(), {.count = 3}), HasSubstr("a divisor of train.accumulation = 4"));
  EXPECT_THAT(error(recipe(), {.gpu = "h10"}), HasSubstr("did you mean"));
  for (const double mfu : {0.0, 1e-300, 1.01, 40.0, double(NAN)})
    EXPECT_THAT(error(recipe(), {.mfu = mfu}), HasSubstr("--mfu"));
  for (const double peak : {-1.0, 0.0, 1e-320, double(INFINITY), double(NAN)})
    EXPECT_THAT(error(recipe(), {.peak_tflops = peak}), HasSubstr("--peak-tflops"));
  train::RunConfig odd = recipe();
  odd.model.head_dim = 33;
  EXPECT_THAT(error(odd, {}), HasSubstr("model.head_dim"));
  odd = recipe();
  odd.train.warmup_steps = 101;
  EXPECT_THAT(error(odd, {}), HasSubstr("train.warmup_steps"));
}

TEST(Plan, RefusesWhatItCannotCount) {
  const auto error = [](const std::function<void(train::RunConfig&)>& change) {
    train::RunConfig config = recipe();
    change(config);
    return xsa::testing::error_of<UsageError>([&] { plan(config, {}); });
  };
  constexpr std::int64_t kHuge = 8'000'000'000'000'000'000;
  EXPECT_THAT(error([](auto& c) { c.model.width = 3'000'000'000; }), HasSubstr("parameters"));
  EXPECT_THAT(error([](auto& c) { c.model.heads = kHuge; }), HasSubstr("parameters"));
  EXPECT_THAT(error([](auto& c) { c.model.feed_forward_width = kHuge; }), HasSubstr("parameters"));
  EXPECT_THAT(error([](auto& c) { c.model.layers = 100'000'000; }), HasSubstr("model.layers"));
  EXPECT_THAT(error([](auto& c) { c.model.context = kHuge; }), HasSubstr("tokens of training"));
  EXPECT_THAT(error([](auto& c) { c.train.steps = kHuge; }), HasSubstr("tokens of training"));
  EXPECT_THAT(error([](auto& c) {
                c.train = {.steps = 1, .batch_size = 1'000'000'000'000, .warmup_steps = 0};
              }),
              HasSubstr("activations"));
}

TEST(Plan, OfManyPassesAndLayersIsMadeAtOnce) {
  train::RunConfig config = recipe();
  config.train.accumulation = 1'000'000'000;
  config.model.layers = 10'000;
  EXPECT_EQ(plan(config, {}).load.passes, 1'000'000'000);
}

TEST(Plan, WarnsOfADeviceThatIsAlmostFull) {
  const auto verdict = [](std::int64_t batch_size) {
    train::RunConfig config = recipe();
    config.train.batch_size = batch_size;
    const Plan made = plan(config, {});
    std::string text;
    for (const std::string& line : lines(made)) text += line + "\n";
    return std::pair(static_cast<double>(made.memory.total()) / 80e9, text);
  };
  const auto [some, within] = verdict(6000);
  EXPECT_LT(some, 0.95);
  EXPECT_THAT(within, HasSubstr("  within the 74.5 GiB of one H100\n"));
  const auto [most, close] = verdict(8500);
  EXPECT_GT(most, 0.95);
  EXPECT_LE(most, 1);
  EXPECT_THAT(close, HasSubstr("TOO CLOSE TO the 74.5 GiB of one H100"));
  EXPECT_THAT(verdict(10000).second, HasSubstr("MORE THAN the 74.5 GiB of one H100"));
}

TEST(PlanOfASweep, CountsEveryTrainingOfEveryPointAndNamesTheLargest) {
  const xsa::testing::TempFolder folder;
  const auto file = folder.write("grid.toml", R"(
[train]
batch_size = 2
accumulation = 2
[sweep]
seeds = 3
[[sweep.axes]]
name = "length"
settings = [
  {label = "short", "model.context" = 64},
  {label = "long", "model.context" = 512, "train.accumulation" = 4},
]
[[sweep.axes]]
name = "lr"
field = "train.lr"
values = [1e-3, 2e-3]
[[sweep.axes]]
name = "attention"
field = "model.attention"
values = ["standard", "exclusive"]
[sweep.reuse_best]
of = "lr"
found_with = {attention = "standard"}
)");
  const Sweep sweep = load_sweep(file, {}, {});
  const SweepPlan made = plan(sweep, {.count = 2});
  ASSERT_EQ(made.points.size(), 6);  // 2 lengths x (2 rates of the baseline, 1 that is reused)
  EXPECT_EQ(made.points[0].name, "length=short,lr=1e-3,attention=standard");
  EXPECT_EQ(made.points[5].name, "length=long,attention=exclusive");
  EXPECT_EQ(made.largest().plan.context, 512);
  const double each_short = made.points[0].plan.hours(), each_long = made.points[5].plan.hours();
  EXPECT_GT(each_long, 16 * each_short);  // as many times the tokens
  EXPECT_NEAR(made.device_hours(), 2 * 3 * 3 * (each_short + each_long), 1e-12);

  const std::vector<std::string> text = lines(made);
  EXPECT_THAT(text.front(), HasSubstr("length=short,lr=1e-3,attention=standard"));
  EXPECT_EQ(text[6], "");
  EXPECT_THAT(text[7], HasSubstr("18, each on 2 H100s"));
  const Json json = to_json(made);
  EXPECT_EQ(json.at("trainings"), 18);
  EXPECT_EQ(json.at("points").at(1).at("plan").at("steps"), made.points[1].plan.steps);
  EXPECT_THAT(xsa::testing::error_of<UsageError>([&] { plan(sweep, {.count = 4}); }),
              HasSubstr("length=short,lr=1e-3,attention=standard: --gpus"));
}

TEST(Plan, SaysInItsLinesWhatItsJsonSays) {
  const Plan made = plan(recipe(), {.count = 4});
  std::string text;
  for (const std::string& line : lines(made)) text += line + "\n";
  EXPECT_THAT(text, HasSubstr("100 steps of 24 sequences of 256"));
  EXPECT_THAT(text, HasSubstr("on 4 H100s at 40 % of 494.7 TFLOP/s (TF32)"));
  const Json json = to_json(made);
  double sum = 0;
  for (const auto& [part, bytes] : json.at("memory_bytes").items())
    if (part != "total") sum += bytes.get<double>();
  EXPECT_EQ(json.at("memory_bytes").at("total"), sum);
  EXPECT_EQ(json.at("passes"), 1);
  EXPECT_EQ(json.at("most_logits_bytes"), 4 * 1024 * 257);  // bytes and an end
}

}  // namespace
}  // namespace xsa::study
