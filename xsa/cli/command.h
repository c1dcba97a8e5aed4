// What every command shares: its recipe, its overrides and where its results go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/cli/command_line.h"
#include "xsa/study/plan.h"
#include "xsa/study/recipe.h"

namespace xsa::cli {

/// The command line of the commands that work on a recipe or a run, read; each uses its part.
struct Arguments {
  std::string recipe = "demo";
  std::string target;     // a checkpoint or a folder
  std::string text;       // --text: another data.source
  std::string tokenizer;  // --tokenizer: another data.tokenizer
  std::string from;       // --from: train.from
  std::string output = "runs";
  std::string file, csv, page;      // --file, --csv, --page: where diagnose writes
  std::optional<std::string> name;  // --name: of the run
  std::optional<std::int64_t> seeds, sequences;
  std::int64_t jobs = 1;     // --jobs: points of a sweep at once
  std::int64_t threads = 0;  // --threads: of diagnose; 0: all cores
  study::Devices devices;    // of plan
  bool resume = false, overwrite = false, json = false, dry_run = false;
  std::vector<study::Override> overrides;
};

/// Warns on standard error, and keeps what it said for a result. Copies keep one list.
struct Warnings {
  std::shared_ptr<std::vector<std::string>> list = std::make_shared<std::vector<std::string>>();
  void operator()(const std::string& warning) const;
};

/// What was printed must have arrived: throws Error where it has not, as on a full disk.
void flush_standard_output();

/// In single quotes; bytes that do not print as \xNN.
std::string in_quotes(std::string_view text);

/// The recipe with --text, --seeds, --sequences, --from and every --table.field over it.
study::Recipe resolve(const Arguments& arguments);
/// output/name; the name is by default the recipe's, with `end` behind it.
std::filesystem::path run_folder(const Arguments& arguments, const std::string& end = "");

// Each returns normally when done and throws otherwise.
void compare(const Arguments& arguments);
void train(const Arguments& arguments);
void diagnose(const Arguments& arguments);
void sweep(const Arguments& arguments);
void plan(const Arguments& arguments);
void add_plan_options(CommandLine& command, Arguments& arguments);
extern const char* const kPlanExamples;

// Commands with options of their own: each declares them on `command`, with examples in their help,
// and returns what to do once they are read.
std::function<void()> declare_prepare(CommandLine& command);
std::function<void()> declare_tokenize(CommandLine& command);
std::function<void()> declare_eval(CommandLine& command);
std::function<void()> declare_generate(CommandLine& command);
std::function<void()> declare_list(CommandLine& command);
std::function<void()> declare_report(CommandLine& command);
std::function<void()> declare_bench(CommandLine& command);

}  // namespace xsa::cli
