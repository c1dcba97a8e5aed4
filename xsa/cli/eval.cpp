#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/owned_folder.h"
#include "xsa/base/parallel.h"
#include "xsa/cli/command.h"
#include "xsa/cli/eval_model.h"
#include "xsa/cli/output_file.h"
#include "xsa/load/load.h"
#include "xsa/tasks/load.h"

namespace xsa::cli {

constexpr char kEvalExamples[] = R"(Examples:
  xsa eval runs/first --tasks hellaswag,piqa --data records/
  xsa eval gpt2/ --data records/ --output evaluations/gpt2      all tasks; killed, it continues
  xsa eval runs/first --text book.txt                           perplexity and bits per byte
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

/// Of one resample there is no deviation; the resamples are kept in memory until the end.
Check resamples() {
  const Check whole = whole_number(0, 10'000'000);
  return {[whole](const std::string& text) {
            const std::string mistake = whole.mistake(text);
            if (!mistake.empty() || text.find_first_not_of('0') == std::string::npos ||
                std::stoll(text) != 1)
              return mistake;
            return cat("expected 0 (no standard errors) or 2 and more, got ", text);
          },
          whole.range};
}

/// What the command reads.
std::vector<std::filesystem::path> inputs_of(const EvalArguments& arguments) {
  const tasks::DataPlaces places = tasks::parse_places(arguments.questions.data);
  std::vector<std::filesystem::path> inputs{arguments.model, places.folder.value_or("")};
  for (const auto& [task, path] : places.named) inputs.emplace_back(path);
  for (const std::string& text : arguments.questions.texts) inputs.emplace_back(text);
  return inputs;
}

void check_requests_file(const EvalArguments& arguments, const std::string& file) {
  if (file == "-") return;
  const auto is_ours = [](std::string_view text) {
    return is_object_with(text.substr(0, text.find('\n')),
                          {"task", "index", "choice", "context_ids", "continuation_ids"});
  };
  check_output_file(file, {"--dump-requests", inputs_of(arguments), is_ours, arguments.overwrite});
}

/// The journal is a file of ours by its first line, results.json as a whole; a line of samples has
/// what the harness writes.
void check_output(const EvalArguments& arguments) {
  const std::filesystem::path folder = arguments.output;
  if (folder.empty()) return;
  if (kind_of(folder) != FolderKind::kOther) check_kind(folder, FolderKind::kEvaluation);
  const auto is_ours = [](std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    return is_object_with(text, {"xsa", "results"}) ||
           is_object_with(line, {"format", "of", "tokens"}) ||
           is_object_with(line, {"doc_id", "doc", "arguments"});
  };
  std::vector<std::string> files{"results.json", "scores.jsonl"};
  if (!arguments.questions.tasks.empty())
    for (const tasks::Task* task : tasks::parse_tasks(arguments.questions.tasks))
      files.push_back("samples_" + task->name + ".jsonl");
  check_output_folder(folder, files,
                      {"--output", inputs_of(arguments), is_ours, arguments.overwrite});
}

/// Tasks are meant where they are named, or their records; --text alone asks for no task.
void choose_tasks(EvalArguments& arguments, bool wants_requests) {
  eval::QuestionOptions& questions = arguments.questions;
  const bool has_folder = tasks::parse_places(questions.data).folder.has_value();
  if (questions.tasks.empty() && (has_folder || (wants_requests && questions.data.empty())))
    questions.tasks = "all";
  check_usage(!questions.tasks.empty() || !questions.texts.empty() || !questions.data.empty(),
              "eval: expected --data DIR with the tasks' records, or --text FILE; see xsa eval "
              "--help");
}

void dump_requests(const EvalArguments& arguments, const std::string& file) {
  check_usage(arguments.questions.texts.empty(),
              "--dump-requests: writes the requests of tasks; "
              "leave out --text");
  check_requests_file(arguments, file);
  const auto tokenizer =
      !arguments.model.empty()
          ? load::tokenizer_of(load::load(arguments.model), arguments.tokenizer, Warnings())
          : text::make_tokenizer(arguments.tokenizer.empty() ? "gpt2" : arguments.tokenizer);
  constexpr auto kAnyContext = std::numeric_limits<std::int64_t>::max();
  tasks::write_requests(
      eval::load_questions(arguments.questions, *tokenizer, kAnyContext, Warnings()).tasks, file);
}

void run(EvalArguments arguments, const std::string& requests_file) {
  choose_tasks(arguments, !requests_file.empty());
  if (!requests_file.empty()) return dump_requests(arguments, requests_file);
  check_usage(!arguments.model.empty(),
              "eval: expected a model: a checkpoint, a run folder, or a GPT-2 in Hugging Face's "
              "format; or --dump-requests FILE to see what one would be asked");
  check_output(arguments);
  evaluate_model(arguments);
}

}  // namespace

std::function<void()> declare_eval(CommandLine& command) {
  const auto arguments = std::make_shared<EvalArguments>();
  const auto requests_file = std::make_shared<std::string>();
  command.footer(cat(kEvalExamples, task_table(), kWhere));
  command.add_option("model", arguments->model,
                     "a checkpoint, a run folder (its newest one), or a GPT-2 folder in Hugging "
                     "Face's format");
  command
      .add_option("--tasks", arguments->questions.tasks,
                  "names with commas between, or all (the default where there is --data DIR)")
      ->check(not_empty());
  command.add_option(
      "--data", arguments->questions.data,
      "folder of the tasks' records; or TASK=PATH, a file or folder of one of --tasks");
  command.add_option("--text", arguments->questions.texts,
                     "a text file: its perplexity and bits per byte, in windows; may be repeated");
  command
      .add_option("--limit", arguments->questions.limit,
                  "the first N records of each task, and the first N windows of each text, alone")
      ->check(whole_number(1));
  command.add_option("--output", arguments->output,
                     "folder for results.json, samples_TASK.jsonl and scores.jsonl; with it, the "
                     "same command continues a killed evaluation");
  command.add_flag("--overwrite", arguments->overwrite,
                   "begin --output anew, and replace files there, or that of --dump-requests, that "
                   "this command did not write");
  command.add_flag("--json", arguments->json, "print results as JSON in place of the table");
  command
      .add_option("--batch-size", arguments->budget.items,
                  "at most N requests at once (1: nothing is shared); default: as many as "
                  "--batch-tokens allows")
      ->check(whole_number(1));
  command.add_option("--batch-tokens", arguments->budget.tokens, "tokens computed at once")
      ->check(whole_number(1));
  command
      .add_option(
          "--bootstrap-iters", arguments->resamples,
          "resamples for the standard error of perplexity, 2 or more; 0: no standard errors")
      ->check(resamples());
  command
      .add_option("--threads", arguments->threads,
                  "default: one for each core that the process may use")
      ->check(whole_number(1, kMostThreads));
  command.add_option(
      "--tokenizer", arguments->tokenizer,
      "gpt2, byte, or a folder with a vocabulary; default: the model's own, without a "
      "model gpt2");
  command.add_option(
      "--dump-requests", *requests_file,
      "write every request as a line of JSON to FILE (-: standard output) and leave");
  return [arguments, requests_file] { run(*arguments, *requests_file); };
}

}  // namespace xsa::cli
