#include "xsa/diagnose/diagnose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/cli/command.h"
#include "xsa/cli/output_file.h"
#include "xsa/data/recorded.h"
#include "xsa/load/load.h"
#include "xsa/op/threads.h"
#include "xsa/report/diagnosis.h"
#include "xsa/report/metrics.h"
#include "xsa/train/standing.h"

namespace xsa::cli {
namespace {

struct Column {
  const char *key, *title;
};
constexpr Column kColumns[] = {
    {"value_cosine", "values' cosine"},  {"attention_diagonal", "own key"},
    {"output_value_cosine", "y with v"}, {"final_value_cosine", "z with v"},
    {"first_key_mass", "first key"},     {"sink_mass", "sinks"},
    {"removed_share", "removed"}};

/// A number as the table shows it, in 16 columns: three decimals, a bar of its size; "–" where
/// there is none.
std::string cell(const Json& value) {
  if (!value.is_number()) return "       –        ";
  constexpr int kBarWidth = 8;
  const double number = value.get<double>();
  char text[32];
  std::snprintf(text, sizeof text, "%7.3f ", number);
  std::string cell = text;
  const int filled = static_cast<int>(std::min(1.0, std::max(0.0, number)) * kBarWidth + 0.5);
  for (int i = 0; i < kBarWidth; ++i) cell += i < filled ? "█" : "·";
  return cell;
}

void print_table(const Json& result) {
  std::printf(
      "%s attention, %lld %s sequence%s of %lld tokens; means over heads, tokens and sequences\n",
      result.at("attention").get<std::string>().c_str(),
      static_cast<long long>(result.at("sequences").get<std::int64_t>()),
      result.at("split").get<std::string>().c_str(), result.at("sequences") == 1 ? "" : "s",
      static_cast<long long>(result.at("context").get<std::int64_t>()));
  const Json& text = result.at("text");
  const Json& own = text.at("is_trained_on");
  std::printf("text: %s%s\n\n", text.at("source").get<std::string>().c_str(),
              own.is_null()     ? ""
              : own.get<bool>() ? ", the model's own"
                                : ", not the model's own");
  std::string head = "layer";
  for (const Column& column : kColumns) {
    head.append("  ").append(column.title);
    head.resize(5 + 16 * static_cast<std::size_t>(&column - kColumns + 1), ' ');
  }
  std::printf("%s\n", head.substr(0, head.find_last_not_of(' ') + 1).c_str());
  for (const Json& layer : result.at("layers")) {
    std::printf("%5lld", static_cast<long long>(layer.at("layer").get<std::int64_t>()));
    for (const Column& column : kColumns) std::printf("%s", cell(layer.at(column.key)).c_str());
    std::printf("\n");
  }
  std::printf(
      "\nCosines: values with one another; y, the attention's output, and z, what the layer passes "
      "on, with the own\nvalue v. Own key, first key, sinks: their shares of the attention. "
      "Removed: "
      "|y - z|^2 / |y|^2.\n");
}

void print(const Json& result, bool json) {
  if (json) {
    std::printf("%s\n", result.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    print_table(result);
  }
}

void warn_of_gaps(const Json& result, const Warnings& warnings) {
  for (const Json& layer : result.at("layers"))
    for (const Column& column : kColumns)
      if (!std::isfinite(report::number_at(layer, column.key)))
        warnings(cat("layer ", layer.at("layer").dump(), ": ", column.title,
                     " is not finite and left out: the model's activations go beyond fp32"));
}

void check_files(const Arguments& arguments, const std::string& source) {
  check_distinct(
      {{"--file", arguments.file}, {"--csv", arguments.csv}, {"--page", arguments.page}});
  const auto check_one = [&](const char* flag, const std::string& path,
                             const std::function<bool(std::string_view)>& is_ours) {
    if (!path.empty())
      check_output_file(path, {flag, {arguments.target, source}, is_ours, arguments.overwrite});
  };
  check_one("--file", arguments.file, [](std::string_view text) {
    return is_object_with(text, {"attention", "sequences", "split", "layers"});
  });
  check_one("--csv", arguments.csv, report::is_diagnosis_csv);
  check_one("--page", arguments.page, report::is_diagnosis_page);
}

/// The text that is measured, and what the result says of it.
struct Measured {
  data::RecordedData data;
  Json text;
};

/// A run's own text is known by its hash, wherever the command is given; another is measured where
/// one is named, and the result says so.
Measured open_text(const load::Loaded& loaded, const data::DataConfig& wanted, bool is_named) {
  const data::DataRecord record = train::data_record_of(loaded.state);
  const bool is_own = !loaded.state.is_null() && !is_named;
  data::RecordedData data =
      is_own ? data::open_recorded(wanted, record, loaded.folder.string(),
                                   "Bring that text back, or measure another one with --text FILE")
             : data::RecordedData{data::open_dataset(wanted), wanted};
  const data::DataRecord found = data::record_of(data.config, data.dataset);
  Json text = {{"source", found.location}, {"data_sha256", found.sha256}};
  text["is_trained_on"] = record.sha256.empty() ? Json() : Json(found.sha256 == record.sha256);
  return {std::move(data), std::move(text)};
}

}  // namespace

void diagnose(const Arguments& arguments) {
  const std::int64_t threads = op::use_threads(arguments.threads);
  const load::Loaded loaded = load::load(arguments.target);
  study::Recipe recipe;
  if (!loaded.recipe.is_null()) recipe.run = train::run_config_from_json(loaded.recipe);
  recipe.run.data.tokenizer = loaded.tokenizer;
  const data::DataConfig trained_on = recipe.run.data;
  if (!arguments.text.empty()) recipe.run.data.source = arguments.text;
  if (!arguments.tokenizer.empty()) recipe.run.data.tokenizer = arguments.tokenizer;
  recipe.diagnose.sequences = diagnose::kPaperSequences;
  if (arguments.sequences)
    study::apply_override(recipe, {"diagnose.sequences", cat(*arguments.sequences)});
  for (const study::Override& setting : arguments.overrides) {
    check_usage(setting.first.starts_with("diagnose.") || setting.first.starts_with("data."), "--",
                setting.first,
                ": the model comes from its checkpoint; only data.* and diagnose.* can be set");
    study::apply_override(recipe, setting);
  }
  const auto tokens_of = [](const data::DataConfig& config) {
    return std::tie(config.source, config.tokenizer, config.validation_fraction);
  };
  const bool names_text =
      !arguments.text.empty() || tokens_of(recipe.run.data) != tokens_of(trained_on);
  check_files(arguments, recipe.run.data.source);
  Warnings warnings;
  // The data's tokenizer is opened by its name; here it is held to the model.
  recipe.run.data.tokenizer =
      load::tokenizer_of(loaded, recipe.run.data.tokenizer, warnings)->name();
  const Measured measured = open_text(loaded, recipe.run.data, names_text);
  Json result = diagnose::diagnose(
      loaded.model, diagnose::split_of(measured.data.dataset, recipe.diagnose), recipe.diagnose);
  result["text"] = measured.text;
  result["tokenizer"] = recipe.run.data.tokenizer;
  result["threads"] = threads;
  warn_of_gaps(result, warnings);
  result["warnings"] = *warnings.list;
  print(result, arguments.json);
  // What was measured has been shown, whatever becomes of the files.
  if (!arguments.file.empty()) write_json_file(arguments.file, result);
  if (!arguments.csv.empty()) atomic_write(arguments.csv, report::diagnosis_csv(result));
  if (!arguments.page.empty()) report::write_diagnosis(result, arguments.target, arguments.page);
}

}  // namespace xsa::cli
