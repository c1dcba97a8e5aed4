#include "xsa/study/recipe.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/suggest.h"
#include "xsa/base/toml.h"
#include "xsa/load/origin.h"

namespace xsa::study {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  Recipe recipe;
  for_each_table(recipe, [&](const char* name, const auto&) { names.push_back(name); });
  return names;
}

/// Where recipes live: beside the user, then beside the program (build/bin/xsa).
std::vector<fs::path> recipe_folders() {
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  return {"recipes", program.parent_path().parent_path().parent_path() / "recipes"};
}

fs::path find_recipe(const std::string& name) {
  if (fs::exists(name) && !fs::is_directory(name)) return name;  // beside a folder runs/demo, too
  std::vector<std::string> known;
  for (const fs::path& folder : recipe_folders()) {
    const fs::path file = folder / (name + ".toml");
    if (fs::exists(file)) return file;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      if (entry.path().extension() == ".toml") known.push_back(entry.path().stem().string());
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::string list, folders;
  for (const std::string& recipe : known) list += (list.empty() ? "" : ", ") + recipe;
  for (const fs::path& folder : recipe_folders())
    folders += (folders.empty() ? "" : " or ") + folder.string();
  throw UsageError(cat("recipe: expected a TOML file or the name of a recipe (",
                       list.empty() ? "none found in " + folders : list, "), got '", name, "'",
                       did_you_mean(name, known)));
}

/// TOML, or a run's recipe.json.
Json read_tables(const fs::path& path) {
  if (path.extension() != ".json") return read_toml_file(path);
  const std::string text = read_file(path);
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw UsageError(cat(path.string(), ": ", error.what()));
  }
}

void apply_tables(Recipe& recipe, const Json& tables, const std::string& file) {
  for (const auto& [table, settings] : tables.items()) {
    bool known = false;
    for_each_table(recipe,
                   [&, &table = table, &settings = settings](const char* name, auto& config) {
                     if (table != name) return;
                     known = true;
                     apply_json(config, settings, name);
                   });
    check_usage(known, file, ": unknown table [", table, "]",
                table == "sweep" ? ": this is a grid of trainings, for xsa sweep and xsa plan"
                                 : did_you_mean(table, table_names()));
  }
}

/// apply(config, "lr", "train") for "train.lr"; false where no table has that name.
template <class Apply>
bool in_its_table(Recipe& recipe, const std::string& name, Apply&& apply) {
  const std::size_t dot = name.find('.');
  const std::string table = name.substr(0, dot);
  bool known = false;
  if (dot == std::string::npos) return false;
  for_each_table(recipe, [&](const char* candidate, auto& config) {
    if (table != candidate) return;
    known = true;
    apply(config, name.substr(dot + 1), candidate);
  });
  return known;
}

constexpr int kMaxBases = 8;  // a recipe that is its own base ends here

Recipe recipe_over_bases(const RecipeFile& file, int bases_left) {
  Recipe recipe;
  Json tables = file.tables;
  const std::string path = file.path.string();
  if (tables.contains("base")) {
    check_usage(tables["base"].is_string(), path,
                ": base: expected the name of a recipe in quotes, got ", tables["base"].dump());
    check_usage(bases_left > 0, path, ": base: expected at most ", kMaxBases,
                " recipes, each the base of the one before; does one name itself?");
    const auto base = tables["base"].get<std::string>();
    const fs::path beside = file.path.parent_path() / base;
    const bool is_beside = beside.has_extension() && fs::exists(beside);
    recipe =
        recipe_over_bases(read_recipe_file(is_beside ? beside.string() : base), bases_left - 1);
    tables.erase("base");
  }
  try {
    apply_tables(recipe, tables, path);
  } catch (const UsageError& error) {
    const std::string text = error.what();
    throw text.starts_with(path) ? error : UsageError(cat(path, ": ", text));
  }
  return recipe;
}

}  // namespace

void apply_override(Recipe& recipe, const Override& setting) {
  const auto& [name, text] = setting;
  try {
    (void)Json(text).dump();  // as recipe.json will hold it
  } catch (const Json::exception&) {
    const std::string seen =
        Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
    throw UsageError(cat(name, ": expected UTF-8, got ", seen,
                         " with other bytes; give what it names another name"));
  }
  const bool known = in_its_table(
      recipe, name, [&, &text = text](auto& config, const std::string& key, const char* table) {
        apply_text(config, key, text, table);
      });
  check_usage(known, "unknown setting --", name, did_you_mean(name, override_names()));
}

void apply_setting(Recipe& recipe, const std::string& name, const Json& value) {
  const bool known =
      in_its_table(recipe, name, [&](auto& config, const std::string& key, const char* table) {
        apply_json(config, Json{{key, value}}, table);
      });
  check_usage(known, "unknown setting '", name, "'", did_you_mean(name, override_names()));
}

RecipeFile read_recipe_file(const std::string& file) {
  const fs::path path = find_recipe(file);
  return {path, read_tables(path)};
}

Recipe recipe_from(const RecipeFile& file) { return recipe_over_bases(file, kMaxBases); }

Recipe load_recipe(const std::string& file, const std::vector<Override>& overrides) {
  Recipe recipe = recipe_from(read_recipe_file(file));
  for (const Override& setting : overrides) apply_override(recipe, setting);
  return recipe;
}

namespace {

bool sets(const std::vector<Override>& overrides, const std::string& name) {
  return std::ranges::any_of(overrides, [&](const Override& one) { return one.first == name; });
}

bool names_origin(const RecipeFile& file) {
  const Json train = file.tables.value("train", Json());
  const Json from = train.is_object() ? train.value("from", Json()) : Json();
  return from.is_string() && from != "";
}

}  // namespace

void take_origin(Recipe& recipe, const RecipeFile& file, const std::vector<Override>& overrides,
                 const Json& run) {
  const std::string& from = recipe.run.train.from;
  if (from.empty()) return;
  const bool begins = run.is_null();
  load::Origin origin;
  if (begins) {
    origin = load::origin_of(from);
  } else {
    apply_json(origin.model, run.value("model", Json::object()), "model");
    origin.tokenizer = run.value("data", Json::object()).value("tokenizer", "");
  }
  recipe.run.model = origin.model;
  const std::string& tokenizer = origin.tokenizer;
  if (!tokenizer.empty()) recipe.run.data.tokenizer = tokenizer;
  if (!sets(overrides, "train.from") && names_origin(file))
    apply_json(recipe.run.model, file.tables.value("model", Json::object()), "model");
  for (const Override& setting : overrides)
    if (setting.first.starts_with("model.") || setting.first == "data.tokenizer")
      apply_override(recipe, setting);
  check_usage(!tokenizer.empty() || sets(overrides, "data.tokenizer"), from,
              ": tells no tokenizer; name the one it was trained with, as --data.tokenizer=gpt2");
  if (begins) load::check_fits(origin.model, recipe.run.model, from);
}

std::string fit_warmup(Recipe& recipe, const RecipeFile& file,
                       const std::vector<Override>& overrides) {
  train::TrainConfig& config = recipe.run.train;
  if (config.warmup_steps <= config.steps || sets(overrides, "train.warmup_steps") ||
      !sets(overrides, "train.steps"))
    return "";
  const train::TrainConfig whole = recipe_from(file).run.train;
  const double share = static_cast<double>(whole.warmup_steps) /
                       static_cast<double>(std::max(whole.steps, whole.warmup_steps));
  config.warmup_steps = static_cast<std::int64_t>(share * static_cast<double>(config.steps));
  return cat("train.warmup_steps: ", config.warmup_steps, " in place of the ", whole.warmup_steps,
             " of ", file.path.string(), ", the same share of ", config.steps,
             config.steps == 1 ? " step" : " steps", "; --train.warmup_steps sets another");
}

Json to_json(const Recipe& recipe) {
  Json json = Json::object();
  for_each_table(recipe,
                 [&](const char* name, const auto& config) { json[name] = xsa::to_json(config); });
  return json;
}

std::vector<std::string> override_names() {
  std::vector<std::string> names;
  for (const FieldHelp& row : field_help()) names.push_back(row.name);
  return names;
}

std::vector<FieldHelp> field_help() {
  std::vector<FieldHelp> rows;
  Recipe recipe;
  for_each_table(recipe, [&](const char* table, const auto& config) {
    for (FieldHelp& row : help_of<std::remove_cvref_t<decltype(config)>>()) {
      row.name = cat(table, ".", row.name);
      rows.push_back(std::move(row));
    }
  });
  return rows;
}

}  // namespace xsa::study
