#include "xsa/diagnose/diagnose.h"

#include <cstdio>
#include <string>

#include "xsa/base/error.h"
#include "xsa/cli/command.h"
#include "xsa/cli/output_file.h"
#include "xsa/load/load.h"
#include "xsa/train/trainer.h"

namespace xsa::cli {
namespace {

/// A number as the table shows it: three decimals, a bar of its size; "–" where there is none.
std::string cell(const Json& value) {
  if (!value.is_number()) return "     –                ";
  constexpr int kBarWidth = 12;
  const double number = value.get<double>();
  std::string text(32, '\0');
  text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%7.3f  ", number)));
  const int filled = static_cast<int>(std::min(1.0, std::max(0.0, number)) * kBarWidth + 0.5);
  for (int i = 0; i < kBarWidth; ++i) text += i < filled ? "█" : "·";
  return text + " ";
}

void print_table(const Json& result) {
  std::printf(
      "%s attention, %lld %s sequences of %lld tokens; means over heads, tokens and sequences\n\n",
      result.at("attention").get<std::string>().c_str(),
      static_cast<long long>(result.at("sequences").get<std::int64_t>()),
      result.at("split").get<std::string>().c_str(),
      static_cast<long long>(result.at("context").get<std::int64_t>()));
  std::printf(
      "layer  values' cosine        attention's diagonal  cosine of y and v     cosine of z and "
      "v\n");
  for (const Json& layer : result.at("layers")) {
    std::printf("%5lld%s%s%s%s\n", static_cast<long long>(layer.at("layer").get<std::int64_t>()),
                cell(layer.at("value_cosine")).c_str(),
                cell(layer.at("attention_diagonal")).c_str(),
                cell(layer.at("output_value_cosine")).c_str(),
                cell(layer.at("final_value_cosine")).c_str());
  }
  std::printf(
      "\ny is the attention's output, v the token's own value, z what the layer passes on.\n");
}

void check_file(const Arguments& arguments, const std::string& source) {
  const auto is_ours = [](std::string_view text) {
    return is_object_with(text, {"attention", "sequences", "split", "layers"});
  };
  check_output_file(arguments.file,
                    {"--file", {arguments.target, source}, is_ours, arguments.overwrite});
}

}  // namespace

void diagnose(const Arguments& arguments) {
  const load::Loaded loaded = load::load(arguments.target);
  study::Recipe recipe;
  if (!loaded.recipe.is_null()) recipe.run = train::run_config_from_json(loaded.recipe);
  recipe.run.data.tokenizer = loaded.tokenizer;
  if (!arguments.text.empty()) recipe.run.data.source = arguments.text;
  if (!arguments.tokenizer.empty()) recipe.run.data.tokenizer = arguments.tokenizer;
  if (arguments.sequences)
    study::apply_override(recipe, {"diagnose.sequences", cat(*arguments.sequences)});
  for (const study::Override& setting : arguments.overrides) {
    check_usage(setting.first.starts_with("diagnose.") || setting.first.starts_with("data."), "--",
                setting.first,
                ": the model comes from its checkpoint; only data.* and diagnose.* can be set");
    study::apply_override(recipe, setting);
  }
  if (!arguments.file.empty()) check_file(arguments, recipe.run.data.source);
  Warnings warnings;
  // The data's tokenizer is opened by its name; here it is held to the model.
  load::tokenizer_of(loaded, recipe.run.data.tokenizer, warnings);
  const data::Dataset dataset = data::open_dataset(recipe.run.data);
  const data::Split& split = recipe.diagnose.split == "train" ? dataset.train : dataset.validation;
  Json result = diagnose::diagnose(loaded.model, split.tokens, recipe.diagnose);
  result["tokenizer"] = recipe.run.data.tokenizer;
  result["warnings"] = *warnings.list;
  if (!arguments.file.empty()) write_json_file(arguments.file, result);
  if (arguments.json) {
    std::printf("%s\n", result.dump(2).c_str());
  } else {
    print_table(result);
  }
}

}  // namespace xsa::cli
