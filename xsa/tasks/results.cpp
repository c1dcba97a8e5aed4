#include "xsa/tasks/results.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "xsa/base/error.h"
#include "xsa/base/hash.h"
#include "xsa/base/system.h"

namespace xsa::tasks {
namespace {

std::string hash_of(const std::string& text) { return sha256(std::as_bytes(std::span(text))); }

Json metric_value(const Task& task, Metric metric, double value) {
  if (task.is_cloze() && metric == Metric::kAccuracy) return static_cast<int>(value);
  return value;
}

Json config_of(const Task& task, const TaskSamples& samples) {
  Json metrics = Json::array();
  for (const Metric metric : task.metrics)
    metrics.push_back({{"metric", metric_name(metric)},
                       {"aggregation", metric == Metric::kPerplexity ? "perplexity" : "mean"},
                       {"higher_is_better", metric != Metric::kPerplexity}});
  Json config = {{"task", task.name}, {"dataset_path", task.dataset}};
  if (!task.config.empty()) config["dataset_name"] = task.config;
  const std::string& split = samples.split.empty() ? task.split : samples.split;
  config[split + "_split"] = split;
  config["description"] = "";
  config["target_delimiter"] = " ";
  config["num_fewshot"] = 0;
  config["metric_list"] = metrics;
  config["output_type"] = task.is_cloze() ? "loglikelihood" : "multiple_choice";
  config["repeats"] = 1;
  config["metadata"] = {{"version", task.version}, {"data_files", samples.files}};
  return config;
}

/// The harness's order of these tables: by the task's name.
Json sorted_by_key(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  std::sort(keys.begin(), keys.end());
  Json sorted = Json::object();
  for (const std::string& key : keys) sorted[key] = object.at(key);
  return sorted;
}

struct SampleHashes {
  std::string record, prompt, target;
};

SampleHashes hashes_of(const Sample& sample) {
  return {hash_of(sample.record.dump(2, ' ', false, Json::error_handler_t::replace)),
          hash_of(sample.requests.front().context), hash_of(sample.target)};
}

/// As the harness makes a file's name of a model's: each run of awkward characters becomes "__".
std::string file_name_of(const std::string& model) {
  constexpr std::string_view kAwkward = "\"<>:/|\\?*[]";
  std::string name;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const bool awkward = kAwkward.find(model[i]) != std::string_view::npos;
    if (!awkward) name += model[i];
    if (awkward && (i == 0 || kAwkward.find(model[i - 1]) == std::string_view::npos)) name += "__";
  }
  return name;
}

Json results_of(const Task& task, std::size_t samples, const std::vector<Figure>& figures) {
  Json result = {{"name", task.name}, {"alias", task.name}, {"sample_len", samples}};
  for (const Figure& figure : figures) {
    const std::string name = metric_name(figure.metric);
    result[name + ",none"] = figure.value;
    result[name + "_stderr,none"] = figure.error ? Json(*figure.error) : Json("N/A");
  }
  return result;
}

}  // namespace

std::string python_float(double value) {
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;  // inf, nan
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  const std::string plain(buffer, fixed.ptr);
  return plain.find('.') == std::string::npos ? plain + ".0" : plain;
}

Json sample_line(const Task& task, const Sample& sample, std::span<const Score> scores) {
  const std::vector<double> values = sample_metrics(task, sample, scores);
  Json arguments = Json::object(), answers = Json::array(), names = Json::array();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Request& request = sample.requests[i];
    arguments[cat("gen_args_", i)] = {{"arg_0", request.context}, {"arg_1", request.continuation}};
    answers.push_back(
        {python_float(scores[i].log_likelihood), scores[i].greedy ? "True" : "False"});
  }
  Json repeats = Json::array();
  for (const Json& answer : answers) repeats.push_back(Json::array({answer}));
  for (const Metric metric : task.metrics) names.push_back(metric_name(metric));
  const SampleHashes hashes = hashes_of(sample);
  Json line = {{"doc_id", sample.index},
               {"doc", sample.record},
               {"target", sample.target},
               {"arguments", arguments},
               {"resps", repeats},
               {"filtered_resps", answers},
               {"filter", "none"},
               {"metrics", names},
               {"doc_hash", hashes.record},
               {"prompt_hash", hashes.prompt},
               {"target_hash", hashes.target}};
  for (std::size_t m = 0; m < values.size(); ++m)
    line[metric_name(task.metrics[m])] = metric_value(task, task.metrics[m], values[m]);
  return line;
}

Json average_of(const std::vector<std::pair<const Task*, std::vector<Figure>>>& figures) {
  const bool has_openai = std::any_of(figures.begin(), figures.end(), [](const auto& entry) {
    return entry.first->name == "lambada_openai";
  });
  double sum = 0;
  Json of = Json::object();
  for (const auto& [task, found] : figures) {
    if (has_openai && task->name == "lambada_standard") continue;
    for (const Figure& figure : found) {
      if (figure.metric != task->customary) continue;
      sum += figure.value;
      of[task->name] = metric_name(figure.metric);
    }
  }
  if (of.size() < 2) return nullptr;
  return {{"value", sum / static_cast<double>(of.size())}, {"of", of}};
}

std::string task_hash(const TaskSamples& samples) {
  std::string all;
  for (const Sample& sample : samples.samples) {
    const SampleHashes hashes = hashes_of(sample);
    all += hashes.record + hashes.prompt + hashes.target;
  }
  return hash_of(all);
}

Json summarize(const std::vector<TaskSamples>& tasks, std::span<const Score> scores,
               const ErrorOptions& options) {
  const std::vector<std::span<const Score>> cut = scores_by_sample(tasks, scores);
  std::vector<std::pair<const Task*, std::vector<Figure>>> figures;
  Json results = Json::object(), configs = Json::object(), versions = Json::object(),
       shots = Json::object(), higher = Json::object(), counts = Json::object(),
       hashes = Json::object();
  std::size_t next = 0;
  for (const TaskSamples& samples : tasks) {
    const Task& task = find_task(samples.task);
    std::vector<std::vector<double>> values;
    for (const Sample& sample : samples.samples)
      values.push_back(sample_metrics(task, sample, cut[next++]));
    figures.emplace_back(&task, task_figures(task, values, options));
    results[task.name] = results_of(task, values.size(), figures.back().second);
    configs[task.name] = config_of(task, samples);
    versions[task.name] = task.version;
    shots[task.name] = 0;
    for (const Metric metric : task.metrics)
      higher[task.name][metric_name(metric)] = metric != Metric::kPerplexity;
    counts[task.name] = {{"original", samples.records}, {"effective", values.size()}};
    hashes[task.name] = task_hash(samples);
  }
  return {{"results", results},
          {"group_subtasks", Json::object()},
          {"configs", sorted_by_key(configs)},
          {"versions", sorted_by_key(versions)},
          {"n-shot", sorted_by_key(shots)},
          {"higher_is_better", sorted_by_key(higher)},
          {"n-samples", counts},
          {"average", average_of(figures)},
          {"task_hashes", hashes}};
}

Json with_facts(const Json& summary, const RunFacts& facts) {
  Json file = summary;
  file.erase("task_hashes");
  file["config"] = facts.config;
  file["git_hash"] = build_commit();
  file["date"] = facts.start;
  file["agrees_with"] = "lm_eval 0.4.13";
  file.update(facts.tokenizer);
  file["task_hashes"] = summary.at("task_hashes");
  file["model_source"] = facts.model_source;
  file["model_name"] = facts.model_name;
  file["model_name_sanitized"] = file_name_of(facts.model_name);
  for (const char* name : {"system_instruction", "system_instruction_sha", "fewshot_as_multiturn",
                           "chat_template", "chat_template_sha"})
    file[name] = nullptr;
  file["start_time"] = facts.start;
  file["end_time"] = facts.end;
  file["total_evaluation_time_seconds"] = python_float(facts.end - facts.start);
  return file;
}

}  // namespace xsa::tasks
