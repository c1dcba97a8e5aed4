#include "xsa/cli/command.h"

#include <cstdio>

#include "xsa/base/error.h"

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

study::Recipe resolve(const Arguments& arguments) {
  std::vector<study::Override> overrides;
  if (!arguments.text.empty()) overrides.emplace_back("data.source", arguments.text);
  if (arguments.seeds) overrides.emplace_back("compare.seeds", cat(*arguments.seeds));
  if (arguments.sequences) overrides.emplace_back("diagnose.sequences", cat(*arguments.sequences));
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  return study::load_recipe(arguments.recipe, overrides);
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
