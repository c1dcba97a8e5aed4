#include "xsa/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/parallel.h"
#include "xsa/base/suggest.h"
#include "xsa/base/system.h"

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

xsa COMMAND --help tells more. Exit codes: 0 done, 1 failed, 2 usage, 130 and 143 interrupted (state saved).)";

constexpr char kCompareExamples[] = R"(Examples:
  xsa compare                                  the recipe 'demo', into runs/demo/
  xsa compare --text corpus/ --name corpus     a folder of text files
  xsa compare --seeds 3 --train.steps=600      three pairs of trainings, longer ones
  xsa compare my-recipe.toml --train.lr=1e-3   your recipe, one field changed

Run again after an interruption, or with other --seeds, it continues: finished runs are kept.
Any field of a recipe (TOML, see recipes/) can be set as --table.field=value:
)";

constexpr char kTrainExamples[] = R"(Examples:
  xsa train --name first                          the recipe 'demo' with XSA, into runs/first/
  xsa train --name base --model.attention=standard
  xsa train --name first --resume                 continue after an interruption, to the same bits

Any field of a recipe (TOML, see recipes/) can be set as --table.field=value:
)";

constexpr char kSweepExamples[] = R"(Examples:
  xsa sweep sweep-rates --dry-run             which trainings would that be, and how many tokens?
  xsa sweep sweep-rates                       four learning rates, with and without XSA (the paper's Fig. 4)
  xsa sweep sweep-lengths --jobs 2 --seeds 3  two points at a time; three seeds each: mean and spread
  xsa sweep mine.toml --train.steps=600       your sweep, one field of every point changed

Run again after an interruption, it continues: finished points are kept, failed ones are tried again. A point that
fails stops no other. docs/sweep.md says how to write one. Any field that no axis sets can be set as --table.field=value:
)";

constexpr char kDiagnoseExamples[] = R"(Examples:
  xsa diagnose runs/demo/standard-seed1337          its newest checkpoint, on its own training text
  xsa diagnose runs/first --text other.txt --diagnose.split=validation
  xsa diagnose runs/first --sequences 64 --json
  xsa diagnose runs/first --page first.html --csv first.csv
  xsa diagnose gpt2/ --text book.txt                a GPT-2 in Hugging Face's format; without --text, on Shakespeare

Per layer, and in JSON, CSV and page per head. The paper's Fig. 1: the cosine of value vectors with one another, the
weight of the own key, the cosine of attention's output with the own value; the weights of the sequence's first key and
of sinks; the share of the output that the exclusion removes. Linear in the length; docs/diagnose.md defines each.
Settings that can be changed: --data.* and --diagnose.* (xsa compare --help lists them).)";

/// Takes "--table.field=value" and "--table.field value" out of `words`: these are a recipe's, not
/// a flag's.
std::vector<study::Override> take_overrides(std::vector<std::string>& words) {
  std::vector<study::Override> overrides;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (!word.starts_with("--") || name.find('.') == std::string::npos) {
      others.push_back(word);
    } else if (equals != std::string::npos) {
      overrides.emplace_back(name.substr(2), word.substr(equals + 1));
    } else {
      check_usage(i + 1 < words.size(), name, ": expected a value, as ", name, "=VALUE");
      overrides.emplace_back(name.substr(2), words[++i]);
    }
  }
  words = others;
  return overrides;
}

void refuse_extras(const CLI::App& app, bool commands) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const std::string& word = extras.front();
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && option != app.get_help_ptr())
      known.push_back(option->get_name());
  if (word.starts_with("--")) {
    const std::vector<std::string> settings = study::override_names();
    std::transform(settings.begin(), settings.end(), std::back_inserter(known),
                   [](const std::string& name) { return "--" + name; });
  } else if (commands) {
    known.clear();
    for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  }
  throw UsageError(
      cat(commands && !word.starts_with("-") ? "unknown command '" : "unexpected argument '", word,
          "'", did_you_mean(word.substr(0, word.find('=')), known),
          commands ? "; see xsa --help" : "; see xsa " + app.get_name() + " --help"));
}

}  // namespace

Invocation parse(const std::vector<std::string>& words) {
  Invocation invocation;
  Arguments& arguments = invocation.arguments;
  CLI::App app(kAbout, "xsa");
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.set_help_flag("-h,--help", "print this help and leave");
  bool version = false;
  app.add_flag("--version", version, "print version and commit and leave");

  std::vector<std::pair<CLI::App*, std::function<void(const Arguments&)>>> commands;
  const auto add_command = [&](const char* name, const char* about, const std::string& examples) {
    CLI::App* sub = app.add_subcommand(name, about);
    sub->footer(examples);
    sub->allow_extras();
    return sub;
  };
  const auto add = [&](const char* name, const char* about, const std::string& examples,
                       void (*command)(const Arguments&)) {
    CLI::App* sub = add_command(name, about, examples);
    sub->add_flag("--json", arguments.json, "print the result as JSON to standard output");
    commands.emplace_back(sub, command);
    return sub;
  };
  const auto add_declared = [&](const char* name, const char* about, const char* examples,
                                Declare declare) {
    CLI::App* sub = add_command(name, about, examples);
    commands.emplace_back(sub, [name, action = declare(*sub)](const Arguments& read) {
      check_usage(read.overrides.empty(), "unexpected argument '--",
                  read.overrides.empty() ? "" : read.overrides.front().first, "'; see xsa ", name,
                  " --help");
      action();
    });
  };
  const auto add_training = [&](CLI::App* sub, const std::string& what) {
    sub->add_option("--text", arguments.text,
                    "train on this: a text file, a folder of them, or token shards")
        ->check(not_empty());
    sub->add_option("--name", arguments.name,
                    "name of the " + what +
                        "; by default the recipe's, of xsa train with the kind "
                        "of attention: demo-exclusive")
        ->check(not_empty());
    sub->add_option("--output", arguments.output, "folder that holds " + what + "s")
        ->check(not_empty())
        ->default_str("runs");
    sub->add_flag("--overwrite", arguments.overwrite, "replace a " + what + " of the same name");
  };
  const auto add_recipe = [&](CLI::App* sub) {
    sub->add_option("recipe", arguments.recipe,
                    "a TOML file, the name of one in recipes/, or a run's recipe.json")
        ->default_str("demo");
    add_training(sub, "run");
    sub->add_flag("--dry-run", arguments.dry_run, "print the resolved recipe as JSON and leave");
  };

  CLI::App* sub = add("compare", "train with standard attention and with XSA, and report who wins",
                      kCompareExamples + study::field_help(), compare);
  add_recipe(sub);
  sub->add_option("--seeds", arguments.seeds, "pairs of trainings; mean and spread are shown")
      ->check(whole_number(1));
  sub = add("train", "train one model", kTrainExamples + study::field_help(), train);
  add_recipe(sub);
  sub->add_flag("--resume", arguments.resume, "continue the run of this name");
  sub = add("sweep", "train a grid of settings, and report them side by side",
            kSweepExamples + study::field_help(), sweep);
  sub->add_option("recipe", arguments.recipe,
                  "a TOML file with a table [sweep], or one in recipes/")
      ->required();
  add_training(sub, "sweep");
  sub->add_option("--seeds", arguments.seeds, "trainings of each point; mean and spread are shown")
      ->check(whole_number(1));
  sub->add_option("--jobs", arguments.jobs, "points trained at once; they share the cores out")
      ->check(whole_number(1))
      ->default_str("1");
  sub->add_flag("--dry-run", arguments.dry_run, "list the points and their cost and leave");
  sub = add("diagnose", "how much of a model's attention repeats its own value", kDiagnoseExamples,
            diagnose);
  sub->add_option("checkpoint", arguments.target,
                  "a checkpoint, a run (its newest one), or a Hugging Face GPT-2")
      ->required();
  sub->add_option("--text", arguments.text, "measure on this text instead of the training text")
      ->check(not_empty());
  sub->add_option("--tokenizer", arguments.tokenizer, "byte or gpt2; by default the model's own");
  sub->add_option("--sequences", arguments.sequences, "random sequences")
      ->check(whole_number(1))
      ->default_str("1024");
  sub->add_option("--threads", arguments.threads,
                  "CPU threads; 0: one for each core that the process may use")
      ->check(whole_number(0, kMostThreads));
  sub->add_option("--file", arguments.file, "also write the result to this JSON file");
  sub->add_option("--csv", arguments.csv, "also write it as comma-separated values, heads too");
  sub->add_option("--page", arguments.page,
                  "also write a page (HTML) with lines over layers and maps of heads");
  sub->add_flag("--overwrite", arguments.overwrite,
                "replace a --file, --csv or --page that is no result of this");
  add_declared("report",
               "one page with the paper's figures, from runs, sweeps, evaluations, benchmarks",
               kReportExamples, declare_report);
  add_plan_options(
      *add("plan", "what a recipe costs: FLOPs, memory, traffic, hours", kPlanExamples, plan),
      arguments);
  add_declared("eval", "score a model on the field's tasks, as lm-evaluation-harness does",
               kEvalExamples, declare_eval);

  add_declared("prepare", "files of text to token files for training", kPrepareExamples,
               declare_prepare);
  add_declared("tokenize", "text to token ids, or back", kTokenizeExamples, declare_tokenize);

  add_declared("bench", "time and memory of a block, with XSA and without", kBenchExamples,
               declare_bench);
  add_declared("generate", "continue a text with a model", kGenerateExamples, declare_generate);

  std::vector<std::string> rest = words;
  arguments.overrides = take_overrides(rest);
  std::reverse(rest.begin(), rest.end());  // CLI11 takes them last first
  try {
    app.parse(rest);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    invocation.text = chosen.empty() ? app.help() : chosen.front()->help("xsa");
    return invocation;
  } catch (const CLI::RequiredError& error) {
    const auto chosen = app.get_subcommands();
    throw UsageError(cat(error.what(), "; see xsa ",
                         chosen.empty() ? "" : chosen.front()->get_name() + " ", "--help"));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (version) {
    invocation.text = cat("xsa ", XSA_VERSION, " (", build_commit(), ")\n");
    return invocation;
  }
  refuse_extras(app, true);
  for (const auto& [command, run] : commands) {
    if (!command->parsed()) continue;
    refuse_extras(*command, false);
    invocation.command = run;
    return invocation;
  }
  invocation.text = app.help();
  invocation.exit_code = 2;
  return invocation;
}

}  // namespace xsa::cli
