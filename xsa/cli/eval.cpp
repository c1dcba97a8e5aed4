#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/cli/command.h"
#include "xsa/tasks/load.h"

namespace xsa::cli {

const char* const kEvalExamples = R"(Examples:
  xsa eval --tasks hellaswag,piqa --data records/ --dump-requests requests.jsonl
  xsa eval --data records/ --limit 20 --dump-requests -     look at what a model is asked
  xsa eval --tasks piqa --data piqa=validation.jsonl --dump-requests -
)";

namespace {

constexpr char kWhere[] = R"(
Under --data DIR, the records of arc_easy (say) are looked for in the folders DIR/arc_easy/, DIR/allenai/ai2_arc/,
DIR/ai2_arc/ and the hub's cache DIR/datasets--allenai--ai2_arc/: there in the configuration's folder (ARC-Easy/), in
data/, or beside it, as test-*.parquet, test.jsonl or a folder test/; and as one file, DIR/arc_easy.jsonl. Parquet, Arrow
files (what the datasets library saves) and JSON lines (plain, .gz, .zst) are read. Where there is no test split,
validation is taken, with a warning. Every record of the tasks is read and checked before a model runs.)";

/// Which records each task wants, a line a task.
std::string task_table() {
  std::string text =
      "\nTasks, their records on huggingface.co/datasets (docs/evaluation.md has the commands that "
      "fetch them), and fields:\n";
  for (const tasks::Task& task : tasks::all_tasks()) {
    std::string fields;
    for (const std::string& field : task.fields) fields += (fields.empty() ? "" : ", ") + field;
    char line[256];
    std::snprintf(line, sizeof line, "  %-17s%-26s%-14s%-11s%6lld  %s\n", task.name.c_str(),
                  task.dataset.c_str(), task.config.c_str(), task.split.c_str(),
                  static_cast<long long>(task.published), fields.c_str());
    text += line;
  }
  return text;
}

struct Options {
  std::string tasks = "all", requests, tokenizer = "gpt2";
  std::vector<std::string> data;
  std::optional<std::int64_t> limit;
};

std::vector<tasks::TaskSamples> load(const Options& options, const text::Tokenizer& tokenizer) {
  const std::vector<const tasks::Task*> chosen = tasks::parse_tasks(options.tasks);
  const tasks::DataPlaces places = tasks::parse_places(options.data);
  for (const auto& [name, path] : places.named)
    check_usage(std::any_of(chosen.begin(), chosen.end(),
                            [&](const tasks::Task* task) { return task->name == name; }),
                "--data ", name, "=...: this task is not in --tasks ", options.tasks);
  std::vector<tasks::TaskSamples> loaded;
  for (const tasks::Task* task : chosen)
    loaded.push_back(tasks::load_samples(
        *task, places, tokenizer, options.limit, [](const std::string& warning) {
          std::fprintf(stderr, "xsa: warning: %s\n", warning.c_str());
        }));
  return loaded;
}

void run(const Options& options) {
  check_usage(!options.requests.empty(), "expected --dump-requests FILE");
  check_usage(options.limit.value_or(1) >= 1, "--limit: expected 1 record or more, got ",
              options.limit.value_or(1));
  const auto tokenizer = text::make_tokenizer(options.tokenizer);
  tasks::write_requests(load(options, *tokenizer), options.requests);
}

}  // namespace

std::function<void()> declare_eval(CLI::App& command) {
  const auto options = std::make_shared<Options>();
  command.footer(cat(kEvalExamples, task_table(), kWhere));
  command.add_option("--tasks", options->tasks, "names with commas between, or all")
      ->default_str("all");
  command
      .add_option("--data", options->data,
                  "folder of the tasks' records; or TASK=PATH, a file or folder of one task")
      ->allow_extra_args(false);
  command.add_option("--limit", options->limit, "the first N records of each task alone");
  command.add_option(
      "--dump-requests", options->requests,
      "write every request as a line of JSON to FILE (-: standard output) and leave");
  command.add_option("--tokenizer", options->tokenizer, "with --dump-requests: gpt2 or byte")
      ->default_str("gpt2");
  return [options] { run(*options); };
}

}  // namespace xsa::cli
