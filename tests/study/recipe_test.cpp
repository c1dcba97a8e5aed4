#include "xsa/study/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"

namespace xsa::study {
namespace {

using ::testing::HasSubstr;

class Recipes : public ::testing::Test {
 protected:
  std::string write_recipe(const std::string& text) const {
    return folder_.write("recipe_test.toml", text);
  }
  static std::string usage_error(const std::function<void()>& call) {
    return xsa::testing::error_of<UsageError>(call);
  }

  xsa::testing::TempFolder folder_;
};

TEST_F(Recipes, TakeWhatTheFileSaysAndDefaultsForTheRest) {
  const Recipe recipe =
      load_recipe(write_recipe("[train]\nlr = 1e-3\nsteps = 7\n[model]\nbias = true\n"), {});
  EXPECT_EQ(recipe.run.train.lr, 1e-3);
  EXPECT_EQ(recipe.run.train.steps, 7);
  EXPECT_TRUE(recipe.run.model.bias);
  EXPECT_EQ(recipe.run.train.beta2, train::TrainConfig{}.beta2);
}

TEST_F(Recipes, AreAlsoWhatARunWroteAsJson) {
  Recipe recipe;
  recipe.run.train.lr = 0.25;
  recipe.run.model.layers = 3;
  const std::string file = folder_.write("recipe.json", train::to_json(recipe.run).dump());
  EXPECT_EQ(to_json(load_recipe(file, {})), to_json(recipe));
  for (const char* text : {"[model]\n", "", "3", "[1]", "{\"model\": 1}", "{\"modle\": {}}"}) {
    folder_.write("recipe.json", text);
    EXPECT_THAT(usage_error([&] { load_recipe(file, {}); }), HasSubstr("recipe.json: ")) << text;
  }
}

TEST_F(Recipes, FitTheirWarmUpToTheStepsThatAreAskedFor) {
  const RecipeFile file =
      read_recipe_file(write_recipe("[train]\nsteps = 300\nwarmup_steps = 30\n"));
  const auto fitted = [&](const std::vector<Override>& overrides) {
    Recipe recipe = recipe_from(file);
    for (const Override& setting : overrides) apply_override(recipe, setting);
    const std::string note = fit_warmup(recipe, file, overrides);
    EXPECT_EQ(note.empty(), recipe.run.train.warmup_steps == 30) << note;
    return recipe.run.train.warmup_steps;
  };
  EXPECT_EQ(fitted({}), 30);
  EXPECT_EQ(fitted({{"train.steps", "30"}}), 30);
  EXPECT_EQ(fitted({{"train.steps", "29"}}), 2);
  EXPECT_EQ(fitted({{"train.steps", "1"}}), 0);
  Recipe recipe = recipe_from(file);
  const std::vector<Override> own = {{"train.steps", "1"}, {"train.warmup_steps", "2"}};
  for (const Override& setting : own) apply_override(recipe, setting);
  EXPECT_EQ(fit_warmup(recipe, file, own), "") << "what the user says is not changed";
  EXPECT_EQ(recipe.run.train.warmup_steps, 2);
}

TEST_F(Recipes, AreFoundBesideAFolderOfTheirName) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(folder_ / "recipes");
  std::filesystem::create_directories(folder_ / "mine");
  folder_.write("recipes/mine.toml", "[train]\nsteps = 7\n");
  std::filesystem::current_path(folder_.path());
  EXPECT_EQ(load_recipe("mine", {}).run.train.steps, 7);
  EXPECT_THAT(usage_error([&] { load_recipe("recipes", {}); }), HasSubstr("got 'recipes'"));
  std::filesystem::current_path(before);
}

TEST_F(Recipes, AreOverriddenByTheCommandLineInItsOrder) {
  const Recipe recipe =
      load_recipe(write_recipe("[train]\nlr = 1e-3\n"),
                  {{"train.lr", "3e-4"}, {"model.attention", "standard"}, {"train.lr", "4e-4"}});
  EXPECT_EQ(recipe.run.train.lr, 4e-4);
  EXPECT_EQ(recipe.run.model.attention, "standard");
}

TEST_F(Recipes, NameTheNearestMatchOfAnUnknownKeyTableOrSetting) {
  const std::string key = write_recipe("[train]\nlearing_rate = 1\nlr_ = 2\n");
  EXPECT_THAT(usage_error([&] { load_recipe(key, {}); }), HasSubstr("unknown setting"));
  const std::string lr = write_recipe("[train]\nwarmup_step = 2\n");
  EXPECT_THAT(usage_error([&] { load_recipe(lr, {}); }), HasSubstr("did you mean 'warmup_steps'?"));
  const std::string table = write_recipe("[modle]\nlayers = 2\n");
  EXPECT_THAT(usage_error([&] { load_recipe(table, {}); }), HasSubstr("did you mean 'model'?"));
  const std::string empty = write_recipe("");
  EXPECT_THAT(usage_error([&] { load_recipe(empty, {{"train.stesp", "2"}}); }),
              HasSubstr("did you mean 'steps'?"));
  EXPECT_THAT(usage_error([&] { load_recipe(empty, {{"trian.steps", "2"}}); }),
              HasSubstr("did you mean 'train.steps'?"));
}

TEST_F(Recipes, RefuseAWrongTypeOrRange) {
  const std::string empty = write_recipe("");
  EXPECT_THAT(usage_error([&] { load_recipe(empty, {{"train.steps", "many"}}); }),
              HasSubstr("expected an integer"));
  EXPECT_THAT(usage_error([&] { load_recipe(empty, {{"train.steps", "0"}}); }),
              HasSubstr("at least 1"));
  EXPECT_THAT(usage_error([&] { load_recipe(empty, {{"train.lr", "nan"}}); }),
              HasSubstr("expected a finite number"));
  EXPECT_THAT(usage_error([&] { load_recipe(empty, {{"model.attention", "exlusive"}}); }),
              HasSubstr("did you mean 'exclusive'?"));
  EXPECT_THAT(usage_error([&] { load_recipe(write_recipe("[train\n"), {}); }),
              HasSubstr("recipe_test.toml"));
}

TEST_F(Recipes, ThatDoNotExistAreAnErrorThatNamesThem) {
  EXPECT_THAT(usage_error([&] { load_recipe("no-such-recipe", {}); }), HasSubstr("no-such-recipe"));
}

TEST_F(Recipes, SurviveJson) {
  const Json json = to_json(load_recipe(write_recipe("[compare]\nseeds = 3\n"), {}));
  EXPECT_EQ(json.at("compare").at("seeds"), 3);
  EXPECT_TRUE(json.at("model").contains("head_dim"));
}

}  // namespace
}  // namespace xsa::study
