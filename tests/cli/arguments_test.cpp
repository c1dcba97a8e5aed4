#include "xsa/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(usage_error({"eval", "model", "--bootstrap-iters=-1"}), HasSubstr("at least 0"));
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

TEST(Arguments, HelpTeachesWithExamplesAndEverySetting) {
  const Invocation help = parse({"compare", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.text, HasSubstr("Usage: xsa compare"));
  EXPECT_THAT(help.text, HasSubstr("xsa compare --text"));
  for (const std::string& name : study::override_names())
    EXPECT_THAT(help.text, HasSubstr("--" + name));
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
