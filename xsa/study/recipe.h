// A recipe is data: a TOML file with one table per component, any field of which the command line
// may override.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "xsa/diagnose/diagnose.h"
#include "xsa/train/config.h"

namespace xsa::study {

struct CompareConfig {
  std::int64_t seeds = 1;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("seeds", self.seeds, "pairs of trainings, with train.seed, train.seed + 1, ...",
          at_least(1), Effect::kNone);
  }
};

/// Everything a comparison depends on.
struct Recipe {
  train::RunConfig run;
  diagnose::DiagnoseConfig diagnose;
  CompareConfig compare;
};

/// Calls visit("model", recipe.run.model) and so on for every table, in the order of recipes.
template <class AnyRecipe, class Visitor>
void for_each_table(AnyRecipe& recipe, Visitor&& visit) {
  visit("model", recipe.run.model);
  visit("data", recipe.run.data);
  visit("train", recipe.run.train);
  visit("diagnose", recipe.diagnose);
  visit("compare", recipe.compare);
}

/// "train.lr" and "3e-4", as on the command line.
using Override = std::pair<std::string, std::string>;

/// A file's tables, as they stand in it.
struct RecipeFile {
  std::filesystem::path path;
  Json tables;
};
/// `file`: a path (TOML, or a run folder's recipe.json), or the name of a recipe in recipes/.
RecipeFile read_recipe_file(const std::string& file);

/// The tables over those of the recipe that `base = "NAME"` names, or over the defaults. Throws
/// UsageError for an unknown table or key (with the nearest match), a wrong type or range.
Recipe recipe_from(const RecipeFile& file);

/// A file's recipe, then the overrides in their order. Throws UsageError as recipe_from does.
Recipe load_recipe(const std::string& file, const std::vector<Override>& overrides);

/// Where train.from names what a training begins with: the model's settings and the tokenizer are
/// those of that place, or of `run`, a recipe.json's content, where it goes on (null: it begins);
/// over them come the [model] of a file that names train.from itself, and the overrides. Does
/// nothing to other recipes. Throws UsageError for settings that the weights do not fit.
void take_origin(Recipe& recipe, const RecipeFile& file, const std::vector<Override>& overrides,
                 const Json& run = nullptr);

/// A warm-up that only the file asks for and that is longer than the steps of the overrides keeps
/// its share of the file's steps. Returns a line that says so; "" where nothing was done.
std::string fit_warmup(Recipe& recipe, const RecipeFile& file,
                       const std::vector<Override>& overrides);

/// Sets one field. Throws UsageError as load_recipe does.
void apply_override(Recipe& recipe, const Override& setting);
/// The same from a recipe's value: "train.lr" and 0.0003.
void apply_setting(Recipe& recipe, const std::string& name, const Json& value);

Json to_json(const Recipe& recipe);

/// "train.lr", ...: every field of every table.
std::vector<std::string> override_names();

/// The help of every field of every table; each name is "train.lr", ...
std::vector<FieldHelp> field_help();

}  // namespace xsa::study
