#include "xsa/study/evaluation.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "xsa/base/conditions.h"
#include "xsa/base/signals.h"
#include "xsa/diagnose/diagnose.h"
#include "xsa/eval/evaluate.h"
#include "xsa/eval/fingerprint.h"

namespace xsa::study {
namespace {

std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; !list.empty() && begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

eval::Questions read_questions(const train::RunConfig& config, const text::Tokenizer& tokenizer) {
  const train::TrainConfig& train = config.train;
  eval::QuestionOptions options{.tasks = train.eval_tasks,
                                .data = split_at_commas(train.eval_task_data),
                                .texts = split_at_commas(train.eval_texts)};
  if (train.eval_limit > 0) options.limit = train.eval_limit;
  return eval::load_questions(
      options, tokenizer, config.model.context,
      [](const std::string& warning) { std::fprintf(stderr, "%s\n", warning.c_str()); });
}

using Evaluate = decltype(train::TrainOptions::evaluate);

struct Asked {
  std::unique_ptr<text::Tokenizer> tokenizer;
  eval::Questions questions;
};

/// Nothing where nothing is asked for.
std::shared_ptr<const Asked> ask(const train::RunConfig& config) {
  if (config.train.eval_texts.empty() && config.train.eval_tasks.empty()) return nullptr;
  train::resolve(config);  // throws for what the recipe itself forbids, before anything is read
  auto tokenizer = text::make_tokenizer(config.data.tokenizer);
  eval::Questions questions = read_questions(config, *tokenizer);
  return std::make_shared<const Asked>(Asked{std::move(tokenizer), std::move(questions)});
}

Evaluate evaluation_of(const std::shared_ptr<const Asked>& asked) {
  if (!asked) return {};
  return [asked](const model::Gpt& model) -> std::optional<std::vector<Json>> {
    const auto figures = eval::figures(model, *asked->tokenizer, asked->questions);
    if (!figures) return std::nullopt;
    std::vector<Json> lines;
    for (const auto& [name, metrics] : figures->items())
      lines.push_back({{"name", name}, {"metrics", metrics}});
    return lines;
  };
}

/// {"piqa": "100 records, 1f3a..."}: what is asked, by its tokens.
Json hashes_of(const eval::Questions& questions) {
  constexpr std::size_t kDigits = 16;
  Json hashes = Json::object();
  const auto add = [&](const std::string& name, std::size_t count, const char* what,
                       const std::vector<eval::Item>& items) {
    hashes["evaluated " + name] =
        cat(count, " ", what, ", ", eval::fingerprint(items).substr(0, kDigits));
  };
  for (const tasks::TaskSamples& task : questions.tasks) {
    std::vector<eval::Item> items;
    for (const tasks::Sample& sample : task.samples)
      for (const tasks::Request& request : sample.requests)
        items.push_back({request.context_ids, request.continuation_ids});
    add(task.task, task.samples.size(), "records", items);
  }
  for (const eval::TextSamples& text : questions.texts) {
    std::vector<eval::Item> items;
    for (const tasks::Window& window : text.windows)
      items.push_back({window.context, window.predicted});
    add(text.name, items.size(), "windows", items);
  }
  return hashes;
}

}  // namespace

Evaluate evaluation(const train::RunConfig& config) { return evaluation_of(ask(config)); }

decltype(train::TrainOptions::diagnose) diagnosis(const diagnose::DiagnoseConfig& config) {
  return [config](const model::Gpt& model, const data::Dataset& dataset) -> std::optional<Json> {
    try {
      const data::Split& split = diagnose::split_of(dataset, config);
      Json layers = diagnose::diagnose(model, split, config, /*show_progress=*/false).at("layers");
      for (Json& layer : layers) layer.erase("heads");
      return Json{{"layers", layers}};
    } catch (const Interrupted&) {
      return std::nullopt;  // training itself looks at the signal, and saves
    }
  };
}

Measuring::Measuring(const Recipe& recipe) : diagnose_(recipe.diagnose) {
  const auto asked = ask(recipe.run);
  evaluate_ = evaluation_of(asked);
  if (asked) conditions_ = hashes_of(asked->questions);
  add_conditions(conditions_, diagnose_, "diagnose");
}

train::TrainOptions Measuring::options(const std::filesystem::path& run_folder) const {
  train::TrainOptions options{.measured = conditions_};
  options.evaluate = evaluate_;
  options.diagnose = diagnosis(diagnose_);
  options.at_end = [config = diagnose_, run_folder](const model::Gpt& model,
                                                    const data::Dataset& dataset) {
    write_json_file(run_folder / "diagnose.json",
                    diagnose::diagnose(model, diagnose::split_of(dataset, config), config));
    return Json::object();
  };
  return options;
}

}  // namespace xsa::study
