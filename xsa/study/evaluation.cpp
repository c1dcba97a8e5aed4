#include "xsa/study/evaluation.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "xsa/base/signals.h"
#include "xsa/eval/evaluate.h"

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

}  // namespace

decltype(train::TrainOptions::evaluate) evaluation(const train::RunConfig& config) {
  if (config.train.eval_texts.empty() && config.train.eval_tasks.empty()) return {};
  struct Asked {
    std::unique_ptr<text::Tokenizer> tokenizer;
    eval::Questions questions;
  };
  train::resolve(config);  // throws for what the recipe itself forbids, before anything is read
  auto tokenizer = text::make_tokenizer(config.data.tokenizer);
  eval::Questions questions = read_questions(config, *tokenizer);
  const auto asked =
      std::make_shared<const Asked>(Asked{std::move(tokenizer), std::move(questions)});
  return [asked](const model::Gpt& model) -> std::optional<std::vector<Json>> {
    const auto figures = eval::figures(model, *asked->tokenizer, asked->questions);
    if (!figures) return std::nullopt;
    std::vector<Json> lines;
    for (const auto& [name, metrics] : figures->items())
      lines.push_back({{"name", name}, {"metrics", metrics}});
    return lines;
  };
}

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

}  // namespace xsa::study
