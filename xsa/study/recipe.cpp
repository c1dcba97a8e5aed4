#include "xsa/study/recipe.h"

#include <algorithm>
#include <sstream>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/suggest.h"
#include "xsa/base/toml.h"

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
  if (fs::exists(name)) return name;
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
    throw UsageError(error.what());
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
    check_usage(known, file, ": unknown table [", table, "]", did_you_mean(table, table_names()));
  }
}

}  // namespace

void apply_override(Recipe& recipe, const Override& setting) {
  const auto& [name, text] = setting;
  const std::size_t dot = name.find('.');
  const std::string table = name.substr(0, dot);
  bool known = false;
  if (dot != std::string::npos) {
    for_each_table(recipe, [&](const char* candidate, auto& config) {
      if (table != candidate) return;
      known = true;
      apply_text(config, name.substr(dot + 1), text, candidate);
    });
  }
  check_usage(known, "unknown setting --", name, did_you_mean(name, override_names()));
}

Recipe load_recipe(const std::string& file, const std::vector<Override>& overrides) {
  Recipe recipe;
  const fs::path path = find_recipe(file);
  try {
    apply_tables(recipe, read_tables(path), path.string());
  } catch (const UsageError& error) {
    const std::string text = error.what();
    throw text.starts_with(path.string()) ? error : UsageError(cat(path.string(), ": ", text));
  }
  for (const Override& setting : overrides) apply_override(recipe, setting);
  return recipe;
}

Json to_json(const Recipe& recipe) {
  Json json = Json::object();
  for_each_table(recipe,
                 [&](const char* name, const auto& config) { json[name] = xsa::to_json(config); });
  return json;
}

std::vector<std::string> override_names() {
  std::vector<std::string> names;
  Recipe recipe;
  for_each_table(recipe, [&](const char* table, const auto& config) {
    for (const std::string& field : field_names<std::remove_cvref_t<decltype(config)>>()) {
      names.push_back(cat(table, ".", field));
    }
  });
  return names;
}

std::string field_help() {
  std::ostringstream out;
  Recipe recipe;
  for_each_table(recipe, [&](const char* table, const auto& config) {
    out << "\n[" << table << "]\n";
    for (const FieldHelp& row : help_of<std::remove_cvref_t<decltype(config)>>()) {
      std::string head = cat("  --", table, ".", row.name, "=", row.default_value);
      if (head.size() < 36) head.resize(36, ' ');
      out << head << "  " << row.help << (row.range.empty() ? "" : cat(" (", row.range, ")"))
          << "\n";
    }
  });
  return out.str();
}

std::vector<std::string> differences(const Json& now, const Json& before) {
  std::vector<std::string> rows;
  const Json now_flat = now.flatten(), before_flat = before.flatten();
  const auto dotted = [](std::string pointer) {
    pointer.erase(0, 1);
    std::replace(pointer.begin(), pointer.end(), '/', '.');
    return pointer;
  };
  for (const auto& [key, value] : now_flat.items()) {
    const auto old = before_flat.find(key);
    if (old == before_flat.end()) {
      rows.push_back(cat(dotted(key), ": ", value.dump(), ", was not set"));
    } else if (*old != value) {
      rows.push_back(cat(dotted(key), ": ", value.dump(), ", was ", old->dump()));
    }
  }
  for (const auto& [key, value] : before_flat.items()) {
    if (!now_flat.contains(key)) rows.push_back(cat(dotted(key), ": not set, was ", value.dump()));
  }
  return rows;
}

}  // namespace xsa::study
