// The nine tasks: where their records come from, how a record becomes a question, what is measured.
// Facts and wording are lm-evaluation-harness 0.4.13's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/tasks/record.h"

namespace xsa::tasks {

/// A record in a task's words.
struct Question {
  struct Pair {
    std::string context, continuation;
  };
  std::vector<Pair> choices;
  std::int64_t gold = 0;
  /// The choices as acc_norm measures them: without the delimiter.
  std::vector<std::string> texts;
  std::string target;           // what the sample log calls so; "" for gold's number
  Json added = Json::object();  // what the task adds to the record
};

enum class Metric { kAccuracy, kNormalizedAccuracy, kPerplexity };

/// "acc", "acc_norm", "perplexity".
std::string metric_name(Metric metric);

struct Task {
  std::string name;
  double version = 1;
  std::string dataset, config;       // on Hugging Face's hub; config may be "", the hub's default
  std::string split;                 // that is measured: "test" or "validation"
  std::int64_t published = 0;        // records of this split
  std::vector<Metric> metrics;       // in the harness's order
  Metric customary;                  // the one that papers report (docs/evaluation.md)
  std::vector<std::string> fields;   // that a record must have
  std::vector<std::string> aliases;  // other names of the data set's folder
  Question (*ask)(const Record& record);

  /// One choice a record, measured by whether the model would say it itself.
  bool is_cloze() const { return metrics.front() == Metric::kPerplexity; }
};

/// All nine, in alphabetical order.
const std::vector<Task>& all_tasks();
/// Throws UsageError for an unknown one, with the nearest match.
const Task& find_task(const std::string& name);
/// "a,b", or "all"; each once, in the order given. Throws UsageError for a name that is unknown,
/// empty or there twice.
std::vector<const Task*> parse_tasks(const std::string& list);

}  // namespace xsa::tasks
