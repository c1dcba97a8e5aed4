#include "xsa/cli/eval_model.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/cli/command.h"
#include "xsa/load/load.h"
#include "xsa/op/threads.h"

namespace xsa::cli {
namespace {

tasks::RunFacts facts_of(const EvalArguments& arguments, const load::Loaded& loaded,
                         const text::Tokenizer& tokenizer) {
  const model::Gpt& model = loaded.model;
  tasks::RunFacts facts;
  facts.model_name = arguments.model;
  const auto or_null = [](std::int64_t value) { return value == 0 ? Json() : Json(value); };
  const std::optional<std::int64_t> limit = arguments.questions.limit;
  Json& config = facts.config;
  config["model"] = "xsa";
  config["model_args"]["pretrained"] = arguments.model;
  config["model_num_parameters"] = model::count(model.config()).parameters;
  config["model_dtype"] = "float32";
  config["model_config"] = to_json(model.config());
  if (!loaded.conditions.is_null()) config["trained"] = loaded.conditions;
  config["batch_size"] = or_null(arguments.budget.items);
  config["batch_tokens"] = arguments.budget.tokens;
  config["threads"] = at::get_num_threads();
  config["device"] = "cpu";
  config["limit"] = limit ? Json(*limit) : Json();
  config["bootstrap_iters"] = arguments.resamples;
  facts.tokenizer["tokenizer"] = tokenizer.name();
  facts.tokenizer["eot_token_id"] = tokenizer.end_of_text();
  facts.tokenizer["max_length"] = model.config().context;
  return facts;
}

std::string header(const EvalArguments& arguments, const Json& results) {
  const Json& limit = results.at("config").at("limit");
  return cat("xsa (", arguments.model, "), ", results.at("tokenizer").get<std::string>(),
             " tokenizer, context ", results.at("max_length").dump(),
             ", limit: ", limit.is_null() ? "none" : limit.dump(), ", num_fewshot: 0\n");
}

/// What a reader should know beside the figures; may be empty.
std::string notes(const Json& results) {
  const Json& run = results.at("xsa");
  std::string text;
  for (const auto& task : run.at("truncated").items())
    if (task.value() != 0)
      text += cat(task.key(), ": ", task.value().dump(), " of ",
                  run.at("task_requests").at(task.key()).dump(),
                  " requests are longer than the context; the model saw their end\n");
  return text;
}

}  // namespace

void evaluate_model(const EvalArguments& arguments) {
  op::use_threads(arguments.threads);
  const load::Loaded loaded = load::load(arguments.model);
  const Warnings warnings;
  const auto tokenizer = load::tokenizer_of(loaded, arguments.tokenizer, warnings);
  const auto start = std::chrono::steady_clock::now();
  const eval::Questions questions = eval::load_questions(arguments.questions, *tokenizer,
                                                         loaded.model.config().context, warnings);
  const std::chrono::duration<double> loading = std::chrono::steady_clock::now() - start;
  const Json results = eval::evaluate(loaded.model, *tokenizer, questions,
                                      {.budget = arguments.budget,
                                       .output = arguments.output,
                                       .overwrite = arguments.overwrite,
                                       .resamples = arguments.resamples,
                                       .loading_seconds = loading.count(),
                                       .warnings = *warnings.list,
                                       .facts = facts_of(arguments, loaded, *tokenizer)});
  const std::string shown =
      arguments.json
          ? results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
          : header(arguments, results) + "\n" + tasks::results_table(results) + notes(results);
  std::fputs(shown.c_str(), stdout);
}

}  // namespace xsa::cli
