#include "xsa/cli/command.h"

#include <cstdio>

#include "xsa/base/error.h"
#include "xsa/study/same_conditions.h"

namespace xsa::cli {

void Warnings::operator()(const std::string& warning) const {
  std::fprintf(stderr, "xsa: warning: %s\n", warning.c_str());
  list->push_back(warning);
}

void flush_standard_output() {
  check(std::ferror(stdout) == 0 && std::fflush(stdout) == 0,
        "standard output: cannot write; is its disk full?");
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, byte < ' ' || byte == 0x7f ? "\\x%02x" : "%c", byte);
    result += escaped;
  }
  return result + "'";
}

namespace {

/// The recipe of a run or a comparison that a folder holds; null where there is none.
Json begun_recipe(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "recipe.json";
  return std::filesystem::exists(path) ? read_json_file(path) : Json();
}

}  // namespace

study::Recipe resolve(const Arguments& arguments) {
  std::vector<study::Override> overrides;
  if (!arguments.text.empty()) overrides.emplace_back("data.source", arguments.text);
  if (arguments.seeds) overrides.emplace_back("compare.seeds", cat(*arguments.seeds));
  if (arguments.sequences) overrides.emplace_back("diagnose.sequences", cat(*arguments.sequences));
  if (!arguments.from.empty()) overrides.emplace_back("train.from", arguments.from);
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  const study::RecipeFile file = study::read_recipe_file(arguments.recipe);
  study::Recipe recipe = study::recipe_from(file);
  for (const study::Override& setting : overrides) study::apply_override(recipe, setting);
  // A training's own name has the attention behind the recipe's; a comparison's has not.
  std::filesystem::path folder = run_folder(arguments);
  if (!std::filesystem::exists(folder / "recipe.json") || arguments.resume)
    folder = run_folder(arguments, "-" + recipe.run.model.attention);
  const Json saved = arguments.overwrite ? Json() : begun_recipe(folder);
  const std::string begun_with = study::begun_from(saved);
  if (arguments.resume && !saved.is_null()) {
    std::string& from = recipe.run.train.from;
    if (from.empty()) from = begun_with;
    check_usage(from == begun_with, folder.string(), ": holds a run that began with ",
                begun_with.empty() ? "weights of its own" : "the weights of " + begun_with,
                ", which goes on without --from; got --from ", from);
  }
  const bool goes_on = !begun_with.empty() && begun_with == recipe.run.train.from;
  study::take_origin(recipe, file, overrides, goes_on ? saved : Json());
  const std::string note = study::fit_warmup(recipe, file, overrides);
  if (!note.empty()) std::fprintf(stderr, "xsa: %s\n", note.c_str());
  return recipe;
}

std::filesystem::path run_folder(const Arguments& arguments, const std::string& end) {
  const std::filesystem::path recipe = arguments.recipe;
  const bool is_file = recipe.extension() == ".toml" || recipe.extension() == ".json";
  // A recipe's name may have a point: paper-0.7b.
  const std::string name = arguments.name.value_or(
      (is_file ? recipe.stem().string() : recipe.filename().string()) + end);
  check_usage(!name.empty() && name.find('/') == std::string::npos && name != "." && name != "..",
              "--name: expected a plain folder name, got '", name,
              "'; --output says where it goes");
  return std::filesystem::path(arguments.output) / name;
}

}  // namespace xsa::cli
