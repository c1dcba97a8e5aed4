#include "xsa/study/sweep_plan.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"

namespace xsa::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGrid = R"(
[train]
steps = 7
[sweep]
title = "Rates"
figure = "fig4"
seeds = 2
[[sweep.axes]]
name = "lr"
label = "learning rate"
field = "train.lr"
values = [5e-4, 1e-3]
[[sweep.axes]]
name = "attention"
field = "model.attention"
values = ["standard", "exclusive"]
)";

constexpr const char* kReuse = R"(
[sweep]
[[sweep.axes]]
name = "size"
settings = [{label = "small", "model.layers" = 1}, {label = "large", model.layers = 2}]
[[sweep.axes]]
name = "lr"
field = "train.lr"
values = [1, 2, 3]
[[sweep.axes]]
name = "attention"
field = "model.attention"
values = ["standard", "exclusive"]
[sweep.reuse_best]
of = "lr"
found_with = {attention = "standard"}
)";

class SweepPlan : public ::testing::Test {
 protected:
  Sweep load(const std::string& text, const std::vector<Override>& overrides = {},
             std::optional<std::int64_t> seeds = {}) const {
    return load_sweep(folder_.write("sweep.toml", text), overrides, seeds);
  }
  std::string refusal(const std::string& text, const std::vector<Override>& overrides = {}) const {
    return xsa::testing::error_of<UsageError>([&] { load(text, overrides); });
  }
  static std::vector<std::string> names(const std::vector<SweepPoint>& points) {
    std::vector<std::string> list;
    for (const SweepPoint& point : points) list.push_back(point.name());
    return list;
  }
  static std::string replaced(std::string text, const std::string& part, const std::string& with) {
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), with);
  }

  xsa::testing::TempFolder folder_;
};

TEST_F(SweepPlan, IsEveryCombinationWithEverySeed) {
  const Sweep sweep = load(kGrid);
  EXPECT_EQ(sweep.title, "Rates");
  EXPECT_EQ(sweep.figure, "fig4");
  EXPECT_EQ(sweep.axes[0].label, "learning rate");
  EXPECT_EQ(sweep.axes[1].label, "attention");
  const auto points = first_points(sweep);
  EXPECT_THAT(
      names(points),
      ElementsAre("lr=5e-4,attention=standard,seed=1337", "lr=5e-4,attention=standard,seed=1338",
                  "lr=5e-4,attention=exclusive,seed=1337", "lr=5e-4,attention=exclusive,seed=1338",
                  "lr=1e-3,attention=standard,seed=1337", "lr=1e-3,attention=standard,seed=1338",
                  "lr=1e-3,attention=exclusive,seed=1337",
                  "lr=1e-3,attention=exclusive,seed=1338"));
  EXPECT_EQ(points[3].settings, (Json{{"train.lr", 5e-4}, {"model.attention", "exclusive"}}));
  const train::RunConfig config = run_config(sweep, points[3]);
  EXPECT_EQ(config.train.lr, 5e-4);
  EXPECT_EQ(config.train.steps, 7);
  EXPECT_EQ(config.train.seed, 1338);
  EXPECT_EQ(config.model.attention, "exclusive");
  EXPECT_TRUE(later_points(sweep, [](const SweepPoint&) { return 1.0; }).empty());
}

TEST_F(SweepPlan, TakesSeedsAndSettingsFromTheCommandLine) {
  const Sweep sweep = load(kGrid, {{"train.steps", "9"}, {"train.seed", "5"}}, 1);
  EXPECT_THAT(sweep.seeds, ElementsAre(5));
  EXPECT_EQ(run_config(sweep, first_points(sweep)[0]).train.steps, 9);
  EXPECT_THAT(refusal(kGrid, {{"train.lr", "1"}}), HasSubstr("axis 'lr' of this sweep sets it"));
  EXPECT_THAT(refusal(kGrid, {{"compare.seeds", "2"}}), HasSubstr("--seeds N"));
}

TEST_F(SweepPlan, TakesAnotherRecipeAsItsBase) {
  const auto base = folder_.write("base.toml", "[model]\nlayers = 3\nwidth = 48\n");
  const Sweep sweep = load(cat("base = \"", base.string(), "\"\n[model]\nwidth = 32\n", kGrid));
  EXPECT_EQ(sweep.base.run.model.layers, 3);
  EXPECT_EQ(sweep.base.run.model.width, 32);
  EXPECT_EQ(load(cat("base = \"base.toml\"\n", kGrid)).base.run.model.layers, 3);  // beside it
  const auto grid = folder_.write("grid.toml", kGrid);
  EXPECT_THAT(refusal(cat("base = \"", grid.string(), "\"\n", kGrid)),
              HasSubstr("unknown table [sweep]"));
  EXPECT_THAT(refusal(cat("base = \"no-such-recipe\"\n", kGrid)), HasSubstr("no-such-recipe"));
  const std::string self = (folder_ / "self.toml").string();
  folder_.write("self.toml", cat("base = \"", self, "\"\n"));
  EXPECT_THAT(xsa::testing::error_of<UsageError>([&] { load_recipe(self, {}); }),
              HasSubstr("does one name itself?"));
}

TEST_F(SweepPlan, VariesSettingsTogether) {
  const Sweep sweep = load(kReuse);
  ASSERT_EQ(sweep.axes[0].values.size(), 2);
  EXPECT_EQ(sweep.axes[0].values[0].settings, (Json{{"model.layers", 1}}));
  EXPECT_EQ(sweep.axes[0].values[1].settings, (Json{{"model.layers", 2}}));  // without quotes
}

TEST_F(SweepPlan, ReusesTheBestOfTheBaselineForEachValueOfTheOtherAxes) {
  const Sweep sweep = load(kReuse, {}, 2);
  const auto first = first_points(sweep);
  EXPECT_EQ(first.size(), 2 * 3 * 2);
  for (const SweepPoint& point : first) EXPECT_EQ(point.labels.at("attention"), "standard");

  const auto later = later_points(sweep, [](const SweepPoint& point) -> std::optional<double> {
    EXPECT_EQ(point.labels.at("attention"), "standard");
    const bool small = point.labels.at("size") == "small";
    if (small && point.labels.at("lr") == "1")  // the lowest mean, but one seed failed
      return point.seed == 1337 ? std::optional(0.1) : std::nullopt;
    return point.labels.at("lr") == (small ? "2" : "3") ? 1.0 : 2.0;
  });
  EXPECT_THAT(names(later), ElementsAre("size=small,lr=2,attention=exclusive,seed=1337",
                                        "size=small,lr=2,attention=exclusive,seed=1338",
                                        "size=large,lr=3,attention=exclusive,seed=1337",
                                        "size=large,lr=3,attention=exclusive,seed=1338"));
  EXPECT_EQ(run_config(sweep, later[2]).train.lr, 3);
  EXPECT_EQ(run_config(sweep, later[2]).model.layers, 2);
}

TEST_F(SweepPlan, HasNoBestWhereEveryPointFailed) {
  const auto later =
      later_points(load(kReuse), [](const SweepPoint&) { return std::optional<double>(); });
  EXPECT_THAT(names(later), ElementsAre("size=small,attention=exclusive,seed=1337",
                                        "size=large,attention=exclusive,seed=1337"));
  const auto not_a_number =
      later_points(load(kReuse), [](const SweepPoint&) { return std::optional<double>(NAN); });
  EXPECT_EQ(names(not_a_number), names(later));
}

TEST_F(SweepPlan, RefusesWhatItDoesNotKnowWithTheNearestMatch) {
  EXPECT_THAT(refusal("[train]\nsteps = 7\n"), HasSubstr("expected a table [sweep]"));
  const auto with = [&](const std::string& part, const std::string& other) {
    return refusal(replaced(kGrid, part, other));
  };
  EXPECT_THAT(with("field = \"train.lr\"", "field = \"train.l\""),
              HasSubstr("unknown setting 'l' (did you mean 'lr'?)"));
  EXPECT_THAT(with("field = \"train.lr\"", "field = \"trian.lr\""),
              HasSubstr("did you mean 'train.lr'?"));
  EXPECT_THAT(with("values = [5e-4, 1e-3]", "valeus = [5e-4, 1e-3]"),
              HasSubstr("did you mean 'values'?"));
  EXPECT_THAT(with("title", "titel"), HasSubstr("did you mean 'title'?"));
  EXPECT_THAT(with("fig4", "fig9"), HasSubstr("expected fig3"));
  EXPECT_THAT(with("[5e-4, 1e-3]", "[]"), HasSubstr("expected a list of at least one value"));
  EXPECT_THAT(with("[5e-4, 1e-3]", "[5e-4, -1]"), HasSubstr("above 0"));
  EXPECT_THAT(with("[5e-4, 1e-3]", "[5e-4, \"1e-3\"]"), HasSubstr("expected a finite number"));
  EXPECT_THAT(with("[5e-4, 1e-3]", "[5e-4, 0.0005]"),
              HasSubstr("the labels '5e-4' and '5e-4' name the same folder"));
  EXPECT_THAT(with("field = \"train.lr\"\nvalues = [5e-4, 1e-3]",
                   "settings = [{label = \"a b\"}, {label = \"a/b\"}]"),
              HasSubstr("the labels 'a b' and 'a/b' name the same folder, 'a-b'"));
  EXPECT_THAT(with("\"exclusive\"", "\"exlusive\""), HasSubstr("did you mean 'exclusive'?"));
  EXPECT_THAT(with("name = \"attention\"", "name = \"lr\""), HasSubstr("two axes"));
  EXPECT_THAT(with("name = \"lr\"", "name = \"a/b\""), HasSubstr("expected letters"));
  EXPECT_THAT(with("field = \"model.attention\"\nvalues = [\"standard\", \"exclusive\"]",
                   "field = \"train.lr\"\nvalues = [1, 2]"),
              HasSubstr("both 'lr' and 'attention' set train.lr"));
  EXPECT_THAT(with("field = \"train.lr\"", "field = \"train.seed\""), HasSubstr("seeds = N"));
  EXPECT_THAT(with("field = \"train.lr\"", "field = \"diagnose.seed\""),
              HasSubstr("changes no training"));
  EXPECT_THAT(with("seeds = 2", "seeds = 300"), HasSubstr("at most 1000 points, got 1200"));
  EXPECT_THAT(with("seeds = 2", "seeds = 0"), HasSubstr("at least 1"));
  EXPECT_THAT(with("seeds = 2", "seeds = 2\nreuse_best = {of = \"lf\", found_with = {}}"),
              HasSubstr("no axis 'lf' (did you mean 'lr'?)"));
  EXPECT_THAT(with("seeds = 2", "seeds = 2\nreuse_best = {of = \"lr\", found_with = {}}"),
              HasSubstr("expected a table"));
  EXPECT_THAT(refusal(replaced(kReuse, "{attention = \"standard\"}", "{attention = \"standart\"}")),
              HasSubstr("did you mean 'standard'?"));
  EXPECT_THAT(refusal("[sweep]\ntitle = \"none\"\n"), HasSubstr("at least one [[sweep.axes]]"));
  EXPECT_THAT(with("[5e-4, 1e-3]", "[5e-4]\nsettings = [{label = \"a\"}]"),
              HasSubstr("either field and values, or settings"));
}

TEST(ShortNumber, IsTheShortestText) {
  EXPECT_EQ(short_number(0.0005), "5e-4");
  EXPECT_EQ(short_number(0.002), "2e-3");
  EXPECT_EQ(short_number(0.00035), "3.5e-4");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(1), "1");
  EXPECT_EQ(short_number(-10.5), "-10.5");
  EXPECT_EQ(short_number(3e10), "3e10");
}

/// The recipes of sweeps that come with the program: every point can be trained.
TEST(SweepRecipes, HoldOnlyPointsThatCanBeTrained) {
  const std::filesystem::path recipes = std::filesystem::path(XSA_RECIPES_FOLDER);
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recipes)) {
    if (entry.path().filename().string().find("sweep-") == std::string::npos) continue;
    ++found;
    const Sweep sweep = load_sweep(entry.path(), {}, {});
    EXPECT_FALSE(sweep.title.empty()) << entry.path();
    std::vector<SweepPoint> points = first_points(sweep);
    const auto later = later_points(sweep, [](const SweepPoint&) { return 1.0; });
    points.insert(points.end(), later.begin(), later.end());
    for (const SweepPoint& point : points)
      EXPECT_NO_THROW(train::resolve(run_config(sweep, point))) << entry.path() << point.name();
  }
  EXPECT_GE(found, 5);
}

}  // namespace
}  // namespace xsa::study
