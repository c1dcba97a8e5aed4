#include "xsa/cli/arguments.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/parallel.h"
#include "xsa/base/suggest.h"
#include "xsa/base/system.h"
#include "xsa/cli/command_line.h"

namespace xsa::cli {
namespace {

constexpr char kAbout[] =
    R"(Exclusive Self Attention (XSA, arXiv 2603.09078) against standard attention:
  z = y - (y.v) v / |v|^2        y: what attention gives a token, v: the token's own value)";

constexpr char kExamples[] = R"(Examples:
  xsa compare                            two small GPTs on Shakespeare, a table and a report with plots
  xsa compare --text my.txt --seeds 3    on your text, three times, with mean and spread
  xsa train --model.attention=standard --name base
  xsa diagnose runs/base                 how much of its attention only repeats its own value?
  xsa generate runs/base --prompt "O, "  let it speak

xsa help COMMAND tells more. Exit codes: 0 done, 1 failed, 2 usage, 129, 130 and 143 interrupted (state saved).)";

constexpr char kCompareExamples[] = R"(Examples:
  xsa compare                                  the recipe 'demo', into runs/demo/
  xsa compare --text corpus/ --name corpus     a folder of text files
  xsa compare --seeds 3 --train.steps=600      three pairs of trainings, longer ones
  xsa compare my-recipe.toml --train.lr=1e-3   your recipe, one field changed

Run again after an interruption, or with other --seeds, it continues: finished runs are kept.
Any field of a recipe (TOML, see recipes/) can be set as --table.field=value.
)";

constexpr char kTrainExamples[] = R"(Examples:
  xsa train --name first                          the recipe 'demo' with XSA, into runs/first/
  xsa train --name base --model.attention=standard
  xsa train --name first --resume                 continue after an interruption, to the same bits
  xsa train --from runs/base@best --model.attention=exclusive --train.lr=3e-4   go on from its weights, with XSA
  xsa train --from gpt2/ --text mine.txt          from a GPT-2 in Hugging Face's format

Any field of a recipe (TOML, see recipes/) can be set as --table.field=value.
)";

constexpr char kSweepExamples[] = R"(Examples:
  xsa sweep sweep-rates --dry-run             which trainings would that be, and how many tokens?
  xsa sweep sweep-rates                       four learning rates, with and without XSA (the paper's Fig. 4)
  xsa sweep sweep-lengths --jobs 2 --seeds 3  two points at a time; three seeds each: mean and spread
  xsa sweep mine.toml --train.steps=600       your sweep, one field of every point changed

Run again after an interruption, it continues: finished points are kept, failed ones are tried again. A point that
fails stops no other. docs/sweep.md says how to write one. Any field that no axis sets can be set as --table.field=value.
)";

constexpr char kDiagnoseExamples[] = R"(Examples:
  xsa diagnose runs/demo/standard-seed1337          its newest checkpoint, on its own training text
  xsa diagnose runs/first@best                      that of the lowest validation loss; @latest, @300: of a step
  xsa diagnose runs/first --text other.txt --diagnose.split=validation
  xsa diagnose runs/first --sequences 64 --json
  xsa diagnose runs/first --page first.html --csv first.csv
  xsa diagnose gpt2/ --text book.txt                a GPT-2 in Hugging Face's format; without --text, on Shakespeare

Per layer, and in JSON, CSV and page per head. The paper's Fig. 1: the cosine of value vectors with one another, the
weight of the own key, the cosine of attention's output with the own value; the weights of the sequence's first key and
of sinks; the share of the output that the exclusion removes. Linear in the length; docs/diagnose.md defines each.
Settings that can be changed: --data.* and --diagnose.* (xsa compare --help-all lists them).)";

using Words = std::vector<std::string>;
using Run = std::function<void(const Arguments&)>;

/// Of a recipe's many settings those that people use, where a command has them.
const Words kFewSettings = {"model.layers", "model.width",      "model.context", "model.attention",
                            "train.steps",  "train.batch_size", "train.lr"};

/// Any setting of a recipe is taken; --help shows a few, --help-all every one.
void add_settings(CommandLine& command, Arguments& arguments, const Words& few) {
  command.take_settings(arguments.overrides, study::override_names());
  std::vector<SettingHelp> all;
  for (const FieldHelp& field : study::field_help()) {
    const std::string range = field.range.empty() ? "" : " (" + field.range + ")";
    const char* const kind = field.type == detail::type_name<std::int64_t>() ? "N"
                             : field.type == detail::type_name<double>()     ? "NUMBER"
                             : field.type == detail::type_name<bool>()       ? "true"
                                                                             : "TEXT";
    all.push_back({field.name, kind, field.default_value, field.help + range});
  }
  command.list_settings(std::move(all), few);
}

CommandLine::Option* add_json(CommandLine& command, Arguments& arguments) {
  return command.add_flag("--json", arguments.json, "print the result as JSON to standard output");
}

void add_training(CommandLine& command, Arguments& arguments, const std::string& what) {
  command
      .add_option("--text", arguments.text,
                  "train on this: a text file, a folder of them, or token shards")
      ->check(not_empty());
  command
      .add_option("--name", arguments.name,
                  "name of the " + what +
                      "; by default the recipe's, of xsa train with the kind of attention: "
                      "demo-exclusive")
      ->check(not_empty());
  command.add_option("--output", arguments.output, "folder that holds " + what + "s")
      ->check(not_empty())
      ->rare();
  command.add_flag("--overwrite", arguments.overwrite, "replace a " + what + " of the same name");
}

void add_recipe(CommandLine& command, Arguments& arguments) {
  command.add_option("recipe", arguments.recipe,
                     "a TOML file, the name of one in recipes/, or a run's recipe.json");
  add_training(command, arguments, "run");
  command
      .add_option(
          "--from", arguments.from,
          "begin with the weights of a run, a checkpoint or a GPT-2 of Hugging Face's, with "
          "its settings and tokenizer")
      ->check(not_empty());
  command.add_flag("--dry-run", arguments.dry_run, "print the resolved recipe as JSON and leave")
      ->rare();
  add_json(command, arguments)->rare();
}

Run declare_compare(CommandLine& command, Arguments& arguments) {
  add_recipe(command, arguments);
  command.add_option("--seeds", arguments.seeds, "pairs of trainings; mean and spread are shown")
      ->check(whole_number(1));
  Words few = kFewSettings;
  std::erase(few, "model.attention");  // both are trained
  add_settings(command, arguments, few);
  command.footer(kCompareExamples);
  return compare;
}

Run declare_train(CommandLine& command, Arguments& arguments) {
  add_recipe(command, arguments);
  command.add_flag("--resume", arguments.resume, "continue the run of this name");
  add_settings(command, arguments, kFewSettings);
  command.footer(kTrainExamples);
  return train;
}

Run declare_sweep(CommandLine& command, Arguments& arguments) {
  arguments.recipe.clear();
  command
      .add_option("recipe", arguments.recipe,
                  "a TOML file with a table [sweep], or one in recipes/")
      ->required();
  add_training(command, arguments, "sweep");
  command
      .add_option("--seeds", arguments.seeds, "trainings of each point; mean and spread are shown")
      ->check(whole_number(1));
  command.add_option("--jobs", arguments.jobs, "points trained at once; they share the cores out")
      ->check(whole_number(1));
  command.add_flag("--dry-run", arguments.dry_run, "list the points and their cost and leave");
  add_json(command, arguments)->rare();
  add_settings(command, arguments,
               {"model.context", "train.steps", "train.batch_size", "train.lr"});
  command.footer(kSweepExamples);
  return sweep;
}

Run declare_diagnose(CommandLine& command, Arguments& arguments) {
  add_json(command, arguments);
  command
      .add_option("checkpoint", arguments.target,
                  "a checkpoint, a run (its newest one), or a Hugging Face GPT-2")
      ->required();
  command.add_option("--text", arguments.text, "measure on this text instead of the training text")
      ->check(not_empty());
  command.add_option("--tokenizer", arguments.tokenizer,
                     "byte, gpt2, or a folder with a vocabulary; by default the model's own");
  command.add_option("--sequences", arguments.sequences, "random sequences")
      ->check(whole_number(1))
      ->default_str("1024");
  command
      .add_option("--threads", arguments.threads,
                  "CPU threads; 0: one for each core that the process may use")
      ->check(whole_number(0, kMostThreads));
  command.add_option("--file", arguments.file, "also write the result to this JSON file");
  command.add_option("--csv", arguments.csv, "also write it as comma-separated values, heads too");
  command.add_option("--page", arguments.page,
                     "also write a page (HTML) with lines over layers and maps of heads");
  command.add_flag("--overwrite", arguments.overwrite,
                   "replace a --file, --csv or --page that is no result of this");
  command.take_settings(arguments.overrides, study::override_names());
  command.footer(kDiagnoseExamples);
  return diagnose;
}

Run declare_plan(CommandLine& command, Arguments& arguments) {
  add_json(command, arguments);
  add_plan_options(command, arguments);
  command.take_settings(arguments.overrides, study::override_names());
  command.footer(kPlanExamples);
  return plan;
}

/// A command with options of its own.
template <std::function<void()> (*kDeclare)(CommandLine&)>
Run own_options(CommandLine& command, Arguments&) {
  return [action = kDeclare(command)](const Arguments&) { action(); };
}

struct Command {
  const char *name, *about;
  Run (*declare)(CommandLine& command, Arguments& arguments);
};

const Command kCommands[] = {
    {"compare", "train with standard attention and with XSA, and report who wins", declare_compare},
    {"train", "train one model", declare_train},
    {"sweep", "train a grid of settings, and report them side by side", declare_sweep},
    {"diagnose", "how much of a model's attention repeats its own value", declare_diagnose},
    {"list", "the runs in a folder: kinds, steps, losses, age", own_options<declare_list>},
    {"report", "one page with the paper's figures, from runs, sweeps, evaluations, benchmarks",
     own_options<declare_report>},
    {"plan", "what a recipe costs: FLOPs, memory, traffic, hours", declare_plan},
    {"eval", "score a model on the field's tasks, as lm-evaluation-harness does",
     own_options<declare_eval>},
    {"prepare", "files of text to token files for training", own_options<declare_prepare>},
    {"tokenize", "text to token ids, or back", own_options<declare_tokenize>},
    {"bench", "time and memory of a block, with XSA and without", own_options<declare_bench>},
    {"generate", "continue a text with a model", own_options<declare_generate>},
};

const Command& find_command(const std::string& word) {
  const auto found = std::ranges::find(
      kCommands, word, [](const Command& command) { return std::string_view(command.name); });
  if (found != std::end(kCommands)) return *found;
  Words known = {"help"};
  for (const Command& command : kCommands) known.push_back(command.name);
  throw UsageError(
      cat(word.starts_with("-") ? "expected a command first, got '" : "unknown command '", word,
          "'", did_you_mean(word, known), "; see xsa --help"));
}

std::string help_of_all() {
  std::string text = cat("Usage: xsa COMMAND [options]\n", kAbout, "\n\nCommands:\n");
  for (const Command& command : kCommands) {
    std::string name = cat("  ", command.name);
    name.resize(12, ' ');
    text += cat(name, command.about, "\n");
  }
  return text + "  help      what a command takes: xsa help train\n\n" + kExamples + "\n";
}

}  // namespace

Invocation parse(const std::vector<std::string>& words) {
  Invocation invocation;
  const auto first_is = [&](std::initializer_list<std::string_view> any) {
    return !words.empty() && std::ranges::find(any, words[0]) != any.end();
  };
  const bool asks_for_help = first_is({"help", "-h", "--help", "--help-all"});
  if (words.empty() || (asks_for_help && (words.size() == 1 || words[1] == "help"))) {
    invocation.text = help_of_all();
    invocation.exit_code = words.empty() ? 2 : 0;
    return invocation;
  }
  if (first_is({"--version"})) {
    invocation.text = cat("xsa ", XSA_VERSION, " (", build_commit(), ")\n");
    return invocation;
  }
  Words rest(words.begin() + (asks_for_help ? 2 : 1), words.end());
  if (asks_for_help) rest.push_back("--help");
  const Command& chosen = find_command(words[asks_for_help ? 1 : 0]);
  CommandLine command(chosen.name, chosen.about);
  const Run run = chosen.declare(command, invocation.arguments);
  if (command.parse(rest))
    invocation.command = run;
  else
    invocation.text = command.help();
  return invocation;
}

}  // namespace xsa::cli
