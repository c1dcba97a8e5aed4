#include "xsa/tasks/load.h"

#include <algorithm>
#include <cstdio>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/data/records.h"
#include "xsa/tasks/encode.h"
#include "xsa/tasks/find_records.h"
#include "xsa/text/case.h"

namespace xsa::tasks {
namespace {

using Warn = std::function<void(const std::string& warning)>;

/// What tells one edition of a data set from another.
struct Edition {
  std::int64_t records = 0, titled = 0, with_capitals = 0;

  void count(const Json& record) {
    const auto text_of = [&](const char* field) {
      const auto found = record.find(field);
      return found != record.end() && found->is_string() ? found->get<std::string>() : "";
    };
    ++records;
    titled += text_of("passage").find(" -- ") != std::string::npos;
    const std::string text = text_of("text");
    with_capitals +=
        std::any_of(text.begin(), text.end(), [](char c) { return 'A' <= c && c <= 'Z'; });
  }

  void warn(const Task& task, const Warn& warn) const {
    if (task.name == "boolq" && 2 * titled < records)
      warn(cat("boolq: ", records - titled, " of ", records,
               " passages lack the title that SuperGLUE's begin with (\"Title -- \"); this is "
               "another edition, whose figures differ"));
    if (task.name == "lambada_openai" && with_capitals == 0)
      warn("lambada_openai: no text has a capital letter; this is lambada_standard's edition");
    if (task.name == "lambada_standard" && 2 * with_capitals > records)
      warn("lambada_standard: the texts have capital letters; this is lambada_openai's edition");
  }
};

void warn_of_size(const Task& task, const TaskSamples& loaded, const Warn& warn) {
  if (!loaded.split.empty() && loaded.split != task.split)
    warn(cat(task.name, ": no ", task.split, " split found, taking ", loaded.split, ": ",
             loaded.files.front(), "; not comparable with published figures"));
  if (loaded.records != task.published)
    warn(cat(task.name, ": ", loaded.records, " records, the published ", task.split, " split has ",
             task.published));
}

Sample make_sample(const Task& task, std::int64_t index, Question&& question, Json&& record) {
  Sample sample{.index = index, .record = std::move(record), .gold = question.gold};
  sample.target =
      task.is_cloze() || !question.target.empty() ? question.target : std::to_string(question.gold);
  for (const auto& item : question.added.items()) sample.record[item.key()] = item.value();
  for (const std::string& text : question.texts) sample.lengths.push_back(text::code_points(text));
  for (Question::Pair& pair : question.choices) {
    Request request{.task = task.name,
                    .index = index,
                    .choice = static_cast<std::int64_t>(sample.requests.size())};
    request.context = std::move(pair.context);
    request.continuation = std::move(pair.continuation);
    sample.requests.push_back(std::move(request));
  }
  return sample;
}

/// The sample log holds whole records: a text that is not UTF-8 must not stop it at the end.
void check_can_be_logged(const Json& record, const std::string& where) {
  try {
    (void)record.dump();
  } catch (const Json::exception& error) {
    throw Error(cat(where, ": expected UTF-8 in every field; ", error.what()));
  }
}

RecordFiles files_of(const Task& task, const DataPlaces& places) {
  for (const auto& [name, path] : places.named)
    if (name == task.name) return named_records(task, path);
  check_usage(places.folder.has_value(), task.name, ": expected --data DIR, or --data ", task.name,
              "=FILE; xsa eval --help says where the records come from");
  return find_records(task, *places.folder);
}

}  // namespace

DataPlaces parse_places(const std::vector<std::string>& words) {
  DataPlaces places;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || std::filesystem::exists(word)) {
      check_usage(!places.folder, "--data: expected one folder, got ", places.folder->string(),
                  " and ", word, "; name a task's own as TASK=PATH");
      places.folder = word;
      continue;
    }
    const std::string& name = find_task(word.substr(0, equals)).name;
    for (const auto& [other, path] : places.named)
      check_usage(other != name, "--data: ", name, " is named twice");
    places.named.emplace_back(name, word.substr(equals + 1));
  }
  return places;
}

TaskSamples load_samples(const Task& task, const DataPlaces& places,
                         const text::Tokenizer& tokenizer, std::optional<std::int64_t> limit,
                         const Warn& warn) {
  const RecordFiles source = files_of(task, places);
  TaskSamples loaded{.task = task.name, .split = source.split};
  Edition edition;
  for (const std::filesystem::path& file : source.files) {
    loaded.files.push_back(file.string());
    data::for_each_record(file, [&](std::int64_t row, Json&& record) {
      const std::string where = cat(task.name, ": ", file.string(), ", record ", row, " (from 0)");
      Question question = task.ask(Record(record, where));
      check_can_be_logged(record, where);
      edition.count(record);
      const std::int64_t index = loaded.records++;
      if (limit && index >= *limit) return;
      loaded.samples.push_back(make_sample(task, index, std::move(question), std::move(record)));
      for (Request& request : loaded.samples.back().requests) {
        try {
          encode_request(tokenizer, request);
        } catch (const Error& error) {
          throw Error(cat(where, ", choice ", request.choice, ": ", error.what()));
        }
      }
    });
  }
  check(loaded.records > 0, task.name, ": ", loaded.files.front(), ": no records");
  warn_of_size(task, loaded, warn);
  edition.warn(task, warn);
  return loaded;
}

Json to_json(const Request& request) {
  return {{"task", request.task},
          {"index", request.index},
          {"choice", request.choice},
          {"context", request.context},
          {"continuation", request.continuation},
          {"context_ids", request.context_ids},
          {"continuation_ids", request.continuation_ids}};
}

void write_requests(const std::vector<TaskSamples>& tasks, const std::string& file) {
  std::string lines;
  for (const TaskSamples& task : tasks)
    for (const Sample& sample : task.samples)
      for (const Request& request : sample.requests) lines += to_json(request).dump() + "\n";
  if (file != "-") {
    atomic_write(file, lines);
    return;
  }
  check(std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size() &&
            std::fflush(stdout) == 0,
        "standard output: cannot write the requests");
}

}  // namespace xsa::tasks
