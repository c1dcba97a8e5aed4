// What is reported of an evaluation, in the layout of the harness's result files, so that whoever
// reads those reads these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/tasks/metrics.h"
#include "xsa/tasks/request.h"

namespace xsa::tasks {

/// A line of the harness's samples_TASK_DATE.jsonl: record, requests, answers as its Python prints
/// them, figures, hashes of record, prompt and target.
Json sample_line(const Task& task, const Sample& sample, std::span<const Score> scores);

/// The average over tasks, of the number that papers report of each: {"value", "of": {task: metric,
/// ...}}. lambada_standard stands in only where lambada_openai was not run. Null for a single task.
Json average_of(const std::vector<std::pair<const Task*, std::vector<Figure>>>& figures);

/// {"results", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better", "n-samples",
/// "average", "task_hashes"}, from one score for each request of all tasks, in order. Throws Error
/// for a score that is not finite, or another number of them.
Json summarize(const std::vector<TaskSamples>& tasks, std::span<const Score> scores,
               const ErrorOptions& options);

/// One hash for the records, prompts and right answers of a task's samples.
std::string task_hash(const TaskSamples& samples);

/// What the model's side knows of a run; `config` and `tokenizer` are added as they are.
struct RunFacts {
  std::string model_source = "xsa", model_name;
  Json config = Json::object();     // model, model_args, batch_size, device, limit, ...
  Json tokenizer = Json::object();  // tokenizer_eos_token, eot_token_id, max_length, ...
  double start = 0, end = 0;        // seconds since 1970
};
/// The summary with config, git_hash, date, and the like behind it, as the harness orders them.
Json with_facts(const Json& summary, const RunFacts& facts);

/// The harness's table, in Markdown, tasks in alphabetical order; and below it a line with the
/// average.
std::string results_table(const Json& summary);

/// Python's repr(): the shortest digits that are this number again.
std::string python_float(double value);

}  // namespace xsa::tasks
