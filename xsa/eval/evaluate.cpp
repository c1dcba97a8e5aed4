#include "xsa/eval/evaluate.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/eval/fingerprint.h"
#include "xsa/eval/score_all.h"
#include "xsa/tasks/load.h"
#include "xsa/tasks/metrics.h"
#include "xsa/tasks/task.h"

namespace xsa::eval {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Everything to score, tasks first, in the order of the questions.
struct Asked {
  std::vector<Item> items;
  std::int64_t requests = 0;  // of tasks; the rest are windows

  explicit Asked(const Questions& questions) {
    std::int64_t record = 0;
    for (const tasks::TaskSamples& task : questions.tasks)
      for (const tasks::Sample& sample : task.samples) {
        for (const tasks::Request& request : sample.requests)
          items.push_back({request.context_ids, request.continuation_ids, record});
        ++record;
      }
    requests = std::ssize(items);
    for (const TextSamples& text : questions.texts)
      for (const tasks::Window& window : text.windows)
        items.push_back({window.context, window.predicted, record++});
  }
};

/// "piqa, record 17 of data/piqa.parquet, choice 0"; "window 3 of a.txt".
std::string name_of(const Questions& questions, std::int64_t item) {
  for (const tasks::TaskSamples& task : questions.tasks) {
    for (const tasks::Sample& sample : task.samples) {
      const std::int64_t choices = std::ssize(sample.requests);
      if (item < choices) return cat(task.task, ", record ", sample.index, ", choice ", item);
      item -= choices;
    }
  }
  for (const TextSamples& text : questions.texts) {
    if (item < std::ssize(text.windows)) return cat(text.path.string(), ", window ", item);
    item -= std::ssize(text.windows);
  }
  return cat("request ", item);
}

/// Names a request that cannot be scored before the model runs.
void check_lengths(const Questions& questions, std::int64_t context) {
  const Asked asked(questions);
  for (std::int64_t i = 0; i < asked.requests; ++i) {
    const std::int64_t length = std::ssize(asked.items[static_cast<std::size_t>(i)].continuation);
    check(length <= context, "eval: ", name_of(questions, i), ": the continuation has ", length,
          " tokens, more than the model's context, ", context,
          "; use a model with a longer context, or leave the record out");
  }
}

Json journal_header(const model::Gpt& model, const text::Tokenizer& tokenizer,
                    const Questions& questions, const Asked& asked) {
  Json names = Json::array();
  for (const tasks::TaskSamples& task : questions.tasks) names.push_back(task.task);
  for (const TextSamples& text : questions.texts) names.push_back(text.name);
  return {{"of", names},
          {"requests", asked.items.size()},
          {"model", fingerprint(model).substr(0, 16)},
          {"tokenizer", tokenizer.identity()},
          {"tokens", fingerprint(asked.items).substr(0, 16)}};
}

/// Requests of each task, and how many of them the model sees only the end of.
std::pair<Json, Json> count_requests(const Questions& questions, std::int64_t context) {
  Json all = Json::object(), cut = Json::object();
  for (const tasks::TaskSamples& task : questions.tasks) {
    std::int64_t requests = 0, truncated = 0;
    for (const tasks::Sample& sample : task.samples)
      for (const tasks::Request& request : sample.requests) {
        ++requests;
        truncated += is_truncated({request.context_ids, request.continuation_ids}, context);
      }
    all[task.task] = requests;
    cut[task.task] = truncated;
  }
  return {all, cut};
}

Json summarize(const Questions& questions, std::span<const tasks::Score> scores,
               std::int64_t requests, const EvaluateOptions& options) {
  std::optional<Progress> bar;
  std::string shown;  // the task that the bar is of
  tasks::ErrorOptions errors{.resamples = options.resamples,
                             .parallel = threads(at::get_num_threads())};
  if (options.progress) {
    errors.progress = [&](const std::string& task, std::int64_t done) {
      if (task != std::exchange(shown, task))
        bar.emplace(task + " stderr", options.resamples, "resample");
      bar->update(done, "");
    };
  }
  Json summary =
      tasks::summarize(questions.tasks, scores.first(static_cast<std::size_t>(requests)), errors);
  auto next = scores.begin() + requests;
  std::vector<double> sums;
  for (const TextSamples& text : questions.texts) {
    double& sum = sums.emplace_back(0);
    for (std::size_t i = 0; i < text.windows.size(); ++i) sum += (next++)->log_likelihood;
  }
  add_texts(summary, questions.texts, sums);
  return summary;
}

/// What an evaluation writes beside its journal.
std::vector<std::filesystem::path> written_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = {folder / "results.json"};
  for (const tasks::Task& task : tasks::all_tasks())
    files.push_back(folder / ("samples_" + task.name + ".jsonl"));
  return files;
}

/// How texts became tokens, for the reader of a result.
Json rules_of(const text::Tokenizer& tokenizer) {
  Json special = Json::array();
  for (const text::SpecialToken& token : tokenizer.special_tokens())
    special.push_back({{"text", token.text}, {"id", token.id}});
  return {{"name", tokenizer.name()},
          {"vocabulary_size", tokenizer.vocabulary_size()},
          {"special_tokens", special},
          {"special_tokens_in_texts", "read as these tokens"},
          {"prefix", tokenizer.begin_of_text()},
          {"prefix_stands", "before an empty context and a text's first window alone"}};
}

void write_samples(const std::filesystem::path& folder, const Questions& questions,
                   std::span<const tasks::Score> scores) {
  const auto cut = tasks::scores_by_sample(questions.tasks, scores);
  auto next = cut.begin();
  for (const tasks::TaskSamples& task : questions.tasks) {
    std::string lines;
    for (const tasks::Sample& sample : task.samples)
      lines += tasks::sample_line(tasks::find_task(task.task), sample, *next++).dump() + "\n";
    atomic_write(folder / ("samples_" + task.task + ".jsonl"), lines);
  }
}

}  // namespace

Questions load_questions(const QuestionOptions& options, const text::Tokenizer& tokenizer,
                         std::int64_t context,
                         const std::function<void(const std::string& warning)>& warn) {
  Questions questions;
  const tasks::DataPlaces places = tasks::parse_places(options.data);
  std::vector<const tasks::Task*> chosen;
  if (!options.tasks.empty()) chosen = tasks::parse_tasks(options.tasks);
  for (const auto& [name, path] : places.named)
    check_usage(std::any_of(chosen.begin(), chosen.end(),
                            [&](const tasks::Task* task) { return task->name == name; }),
                "--data ", name, "=...: this task is not in --tasks",
                options.tasks.empty() ? "" : " ", options.tasks,
                "; add it there, or leave its records out");
  for (const tasks::Task* task : chosen)
    questions.tasks.push_back(tasks::load_samples(*task, places, tokenizer, options.limit, warn));
  questions.texts = load_texts(options.texts, tokenizer, context, options.limit);
  check_lengths(questions, context);
  return questions;
}

Json conditions(const Questions& questions, const text::Tokenizer& tokenizer) {
  Json all = Json::object();
  const auto add = [&](const std::string& name, const char* unit, std::int64_t count,
                       const std::string& hash) {
    all[cat("eval.", name, ".", unit)] = count;
    all[cat("eval.", name, ".sha256")] = hash;
  };
  for (const tasks::TaskSamples& task : questions.tasks)
    add(task.task, "records", std::ssize(task.samples), tasks::task_hash(task));
  for (const TextSamples& text : questions.texts) add(text.name, "bytes", text.bytes, text.sha256);
  if (all.empty()) return all;
  all["eval.num_fewshot"] = 0;
  all["eval.tokenizer"] = tokenizer.identity();
  all["eval.prefix"] = tokenizer.begin_of_text();
  all["eval.dtype"] = "float32";
  return all;
}

Json evaluate(const model::Gpt& model, const text::Tokenizer& tokenizer, const Questions& questions,
              const EvaluateOptions& options) {
  const Asked asked(questions);
  check_usage(!asked.items.empty(), "eval: nothing to score; give --tasks or --text");
  Scorer scorer(model, tokenizer.vocabulary_size(), options.budget);
  check_lengths(questions, scorer.context());

  std::optional<Journal> journal;  // holds the folder until all is written
  if (!options.output.empty()) {
    std::function<void()> clear;
    if (options.overwrite)
      clear = [&] {
        for (const std::filesystem::path& file : written_files(options.output))
          std::filesystem::remove(file);
      };
    journal.emplace(options.output / "scores.jsonl",
                    journal_header(model, tokenizer, questions, asked), std::ssize(asked.items),
                    clear);
  }
  tasks::RunFacts facts = options.facts;
  facts.start = seconds_since_1970();
  const std::vector<tasks::Score> scores =
      score_all(scorer, asked.items,
                {.progress = options.progress,
                 .journal = journal ? &*journal : nullptr,
                 .name = [&](std::int64_t item) { return name_of(questions, item); }});
  facts.end = seconds_since_1970();

  Json results = tasks::with_facts(summarize(questions, scores, asked.requests, options), facts);
  const auto [requests, truncated] = count_requests(questions, scorer.context());
  results["conditions"] = conditions(questions, tokenizer);
  results["xsa"] = {{"requests", asked.requests},
                    {"task_requests", requests},
                    {"truncated", truncated},
                    {"windows", std::ssize(asked.items) - asked.requests},
                    {"tokens_computed", scorer.tokens_computed()},
                    {"rows_scored", scorer.rows_scored()},
                    {"loading_seconds", options.loading_seconds},
                    {"scoring_seconds", facts.end - facts.start},
                    {"tokenizer", rules_of(tokenizer)},
                    {"warnings", options.warnings}};
  if (!options.output.empty()) {
    write_samples(options.output, questions,
                  std::span(scores).first(static_cast<std::size_t>(asked.requests)));
    write_json_file(options.output / "results.json", results);
  }
  return results;
}

std::optional<Json> figures(const model::Gpt& model, const text::Tokenizer& tokenizer,
                            const Questions& questions, const Budget& budget) {
  const EvaluateOptions options{.budget = budget, .progress = false, .resamples = 0};
  Json results;
  try {
    results = evaluate(model, tokenizer, questions, options).at("results");
  } catch (const Interrupted&) {
    return std::nullopt;
  }
  constexpr std::string_view kFilter = ",none";
  Json figures = Json::object();
  for (const auto& task : results.items()) {
    for (const auto& figure : task.value().items()) {
      const std::string& key = figure.key();
      if (key.ends_with(kFilter) && !key.ends_with("_stderr,none"))
        figures[task.key()][key.substr(0, key.size() - kFilter.size())] = figure.value();
    }
  }
  return figures;
}

}  // namespace xsa::eval
