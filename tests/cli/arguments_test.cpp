#include "xsa/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"

namespace xsa::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string usage_error(const std::vector<std::string>& words) {
  return xsa::testing::error_of<UsageError>([&] { parse(words); });
}

TEST(Arguments, OfAScriptsEmptyVariableAreNotTheDefault) {
  for (const char* command : {"compare", "train", "sweep"})
    for (const char* flag : {"--text", "--name", "--output"})
      EXPECT_THAT(usage_error({command, "sweep-lr", flag, ""}),
                  AllOf(HasSubstr(flag), HasSubstr("expected a value, got ''")))
          << command;
  EXPECT_THAT(usage_error({"diagnose", "runs/a", "--text", ""}), HasSubstr("--text"));
}

TEST(Arguments, TakeSettingsInBothFormsWithoutMistakingThemForTheRecipe) {
  const Invocation invocation =
      parse({"compare", "--train.lr", "3e-4", "--train.steps=5", "mine.toml", "--seeds", "2"});
  EXPECT_EQ(invocation.arguments.recipe, "mine.toml");
  EXPECT_EQ(invocation.arguments.seeds, 2);
  EXPECT_THAT(invocation.arguments.overrides,
              ::testing::ElementsAre(::testing::Pair("train.lr", "3e-4"),
                                     ::testing::Pair("train.steps", "5")));
  EXPECT_TRUE(invocation.command);
}

TEST(Arguments, NameTheNearestMatchOfAnUnknownFlagOrCommand) {
  EXPECT_THAT(usage_error({"compare", "--seed=2"}), HasSubstr("did you mean '--seeds'?"));
  EXPECT_THAT(usage_error({"comprae"}), HasSubstr("did you mean 'compare'?"));
  EXPECT_THAT(usage_error({"train", "--resmue"}), HasSubstr("did you mean '--resume'?"));
  EXPECT_THAT(usage_error({"compare", "a.toml", "b.toml"}), HasSubstr("b.toml"));
}

TEST(Arguments, AreNotSuggestedWhereTheyHaveNoFlag) {
  EXPECT_THAT(usage_error({"tokenize", "--file", "x"}),
              AllOf(HasSubstr("--file"), Not(HasSubstr("did you mean"))));
}

TEST(Arguments, RefuseAnEmptyListOfTasks) {
  EXPECT_THAT(usage_error({"eval", "model", "--tasks", ""}), HasSubstr("--tasks: expected"));
  EXPECT_THAT(usage_error({"eval", "model", "--tasks="}), HasSubstr("--tasks"));
}

TEST(Arguments, RefuseAMissingValue) {
  EXPECT_THAT(usage_error({"compare", "--train.lr"}), HasSubstr("expected a value"));
  EXPECT_THAT(usage_error({"compare", "--name"}), HasSubstr("--name"));
  EXPECT_THAT(usage_error({"diagnose"}), HasSubstr("checkpoint"));
}

TEST(Arguments, RefuseANumberOutOfRangeInAFewWords) {
  EXPECT_EQ(usage_error({"eval", "model", "--batch-size", "0"}),
            "--batch-size: expected a whole number of at least 1, got '0'");
  for (const char* flag : {"--batch-size", "--batch-tokens", "--limit"})
    for (const char* value : {"-3", "0", "many", "1.5", "99999999999999999999"})
      EXPECT_EQ(usage_error({"eval", "model", cat(flag, "=", value)}),
                cat(flag, ": expected a whole number of at least 1, got '", value, "'"));
  EXPECT_THAT(usage_error({"eval", "model", "--bootstrap-iters=-1"}),
              HasSubstr("from 0 to 10000000"));
  for (const char* const command : {"generate", "diagnose", "eval"})
    for (const char* const value : {"-1", "4097", "4294967297"})
      EXPECT_THAT(usage_error({command, "model", cat("--threads=", value)}),
                  HasSubstr("--threads: expected a whole number from"));
  EXPECT_EQ(usage_error({"eval", "model", "--bootstrap-iters=0", "--threads=2"}), "");
}

TEST(Arguments, SayWhereTheirHelpIsWhereOneIsMissing) {
  EXPECT_THAT(usage_error({"sweep"}), HasSubstr("recipe is required; see xsa sweep --help"));
  EXPECT_THAT(usage_error({"bench"}), HasSubstr("what is required; see xsa bench --help"));
}

TEST(Arguments, RefuseADeviceOfTwoKindsAndAShareThatIsNoNumber) {
  EXPECT_THAT(usage_error({"plan", "--mfu=x"}), HasSubstr("--mfu: expected a number, got 'x'"));
  EXPECT_THAT(usage_error({"plan", "--gpu=h200", "--peak-tflops=1"}), HasSubstr("--gpu"));
  EXPECT_THAT(usage_error({"sweep", "a.toml", "--seeds=x"}), HasSubstr("a whole number"));
}

TEST(Arguments, OfNothingShowTheHelpAndExitCodeTwo) {
  const Invocation invocation = parse({});
  EXPECT_FALSE(invocation.command);
  EXPECT_EQ(invocation.exit_code, 2);
  EXPECT_THAT(invocation.text, HasSubstr("Examples:"));
}

TEST(Arguments, HelpTeachesWithExamplesAndInFullEverySetting) {
  for (const char* const all : {"--help", "--help-all"}) {
    const Invocation help = parse({"compare", all});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.text, HasSubstr("Usage: xsa compare"));
    EXPECT_THAT(help.text, HasSubstr("xsa compare --text"));
  }
  const std::string all = parse({"compare", "--help-all"}).text;
  for (const std::string& name : study::override_names())
    EXPECT_THAT(all, HasSubstr("--" + name + "="));
  EXPECT_THAT(all, AllOf(HasSubstr("--dry-run"), HasSubstr("--output TEXT"), HasSubstr("--json")));
}

/// How many options and settings a help shows, each on a line of its own.
std::ptrdiff_t shown_options(const std::string& help) {
  std::istringstream lines(help.substr(0, help.find("Examples:")));
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with("  -");
  return count;
}

TEST(Arguments, HelpShowsTheFewThatPeopleUseAndCountsTheOthers) {
  for (const char* const command : {"compare", "train", "sweep"}) {
    const std::string few = parse({command, "--help"}).text;
    const std::string all = parse({command, "--help-all"}).text;
    EXPECT_THAT(shown_options(few), ::testing::AllOf(::testing::Ge(9), ::testing::Le(12))) << few;
    for (const char* const used :
         {"--text TEXT", "--name TEXT", "--overwrite", "--train.steps=N", "--train.lr=NUMBER"})
      EXPECT_THAT(few, HasSubstr(used)) << command;
    std::ptrdiff_t every = shown_options(all);
    std::istringstream settings(all.substr(all.find("\n[model]")));
    for (std::string line; std::getline(settings, line);) every += line.starts_with("  --");
    EXPECT_THAT(few, HasSubstr(cat(every - shown_options(few), " more options and settings: xsa ",
                                   command, " --help-all\n")));
  }
}

TEST(Arguments, HelpOfACommandIsAlsoAsked) {
  EXPECT_EQ(parse({"help"}).text, parse({"--help"}).text);
  EXPECT_EQ(parse({"help"}).exit_code, 0);
  EXPECT_EQ(parse({"help", "help"}).text, parse({"help"}).text);
  EXPECT_THAT(parse({"help"}).text, AllOf(HasSubstr("Commands:"), HasSubstr("\n  sweep ")));
  EXPECT_EQ(parse({"help", "train"}).text, parse({"train", "--help"}).text);
  EXPECT_EQ(parse({"help", "train", "--help-all"}).text, parse({"train", "--help-all"}).text);
  EXPECT_THAT(usage_error({"help", "trian"}), HasSubstr("did you mean 'train'?"));
}

TEST(Arguments, OfOtherProgramsAreAnsweredWithWhatIsMeant) {
  const auto answer = [](const std::vector<std::string>& words) {
    const std::string error = usage_error(words);
    return error.substr(std::min(error.find(" ("), error.size()));
  };
  const auto here = [](const char* ours, const char* command = "train") {
    return cat(" (here it is ", ours, "); see xsa ", command, " --help");
  };
  EXPECT_EQ(answer({"train", "--steps=100"}), here("--train.steps=100"));
  EXPECT_EQ(answer({"train", "--steps", "100"}), here("--train.steps=100"));
  EXPECT_EQ(answer({"train", "--lr=1e-3"}), here("--train.lr=1e-3"));
  EXPECT_EQ(answer({"train", "--lr"}), here("--train.lr"));
  EXPECT_EQ(answer({"train", "--seed=3"}), here("--train.seed=3"));
  EXPECT_EQ(answer({"train", "--batch-size=4"}), here("--train.batch_size=4"));
  EXPECT_EQ(answer({"train", "--max_iters=100"}), here("--train.steps=100"));       // nanoGPT
  EXPECT_EQ(answer({"train", "--block_size=64"}), here("--model.context=64"));      // nanoGPT
  EXPECT_EQ(answer({"train", "--train.max_steps", "9"}), here("--train.steps=9"));  // litgpt
  EXPECT_EQ(answer({"train", "--eval.interval=9"}), here("--train.eval_every=9"));  // litgpt
  EXPECT_EQ(answer({"train", "--optimizer.lr=1"}), here("--train.lr=1"));           // litgpt
  EXPECT_EQ(answer({"train", "--max_steps=100"}), here("--train.steps=100"));       // transformers
  EXPECT_EQ(answer({"train", "--per_device_train_batch_size=4"}), here("--train.batch_size=4"));
  EXPECT_EQ(answer({"train", "--num_hidden_layers=4"}), here("--model.layers=4"));
  EXPECT_EQ(answer({"train", "--out_dir=x"}), here("--output"));
  EXPECT_EQ(answer({"train", "--train.context=64"}), here("--model.context=64"));
  EXPECT_EQ(answer({"generate", "m", "--max_new_tokens=9"}), here("--max-tokens", "generate"));
  EXPECT_EQ(answer({"eval", "m", "--batch_size=9"}), here("--batch-size", "eval"));
  EXPECT_THAT(answer({"train", "--config=a.toml"}),
              HasSubstr("the recipe is named without a flag: a.toml"));
  EXPECT_THAT(answer({"generate", "--model", "runs/a"}),
              HasSubstr("the model is named without a flag: runs/a"));
  EXPECT_THAT(answer({"compare", "--seed=3"}), HasSubstr("or --train.seed=3"));
  for (const char* const command : {"train", "compare", "sweep", "generate", "eval"})
    EXPECT_THAT(usage_error({command, "x", "--device=cuda"}),
                HasSubstr("CPUs alone: leave it out"));
  EXPECT_THAT(answer({"train", "--dropout=0.1"}), HasSubstr("leave it out"));
  EXPECT_EQ(usage_error({"plan", "--gpus=8"}), "");
}

TEST(Arguments, MistypedSettingsAreAnsweredWithTheNearest) {
  for (const auto& [typed, meant] :
       std::vector<std::pair<std::string, std::string>>{{"train.stesp", "train.steps"},
                                                        {"trian.lr", "train.lr"},
                                                        {"model.contxt", "model.context"},
                                                        {"diagnose.sequence", "diagnose.sequences"},
                                                        {"stepz", "train.steps"}})
    EXPECT_THAT(usage_error({"train", "--" + typed + "=1"}),
                AllOf(HasSubstr("--" + meant), HasSubstr(" (")));
}

TEST(Arguments, AreReadAsTheyAreMeant) {
  EXPECT_EQ(parse({"train", "--", "--odd.toml"}).arguments.recipe, "--odd.toml");
  EXPECT_EQ(parse({"compare", "--name=a=b"}).arguments.name, "a=b");
  EXPECT_THAT(
      usage_error({"train", "--name", "--resume"}),
      AllOf(HasSubstr("--name: expected a value"), HasSubstr("got the next flag, --resume")));
  EXPECT_THAT(usage_error({"train", "--name=a", "--name=b"}), HasSubstr("given twice"));
  EXPECT_THAT(usage_error({"train", "--resume=yes"}), HasSubstr("--resume takes no value"));
  EXPECT_THAT(usage_error({"--seeds", "3"}), HasSubstr("expected a command first"));
  EXPECT_THAT(usage_error({"bench", "block", "--lengths=64,,128"}),
              HasSubstr("--lengths: expected a whole number of at least 2, got ''"));
  EXPECT_THAT(usage_error({"generate", "m", "--dtype=float16"}),
              HasSubstr("--dtype: expected one of float32, bfloat16, got 'float16'"));
}

TEST(RunFolder, IsNamedAfterTheRecipeAndNeverLeavesTheOutputFolder) {
  Arguments arguments;
  arguments.recipe = "some/where/mine.toml";
  EXPECT_EQ(run_folder(arguments), "runs/mine");
  arguments.recipe = "paper-0.7b";
  EXPECT_EQ(run_folder(arguments), "runs/paper-0.7b");
  arguments.name = "../elsewhere";
  EXPECT_THROW(run_folder(arguments), UsageError);
}

}  // namespace
}  // namespace xsa::cli
