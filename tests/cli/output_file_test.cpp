#include "xsa/cli/output_file.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa::cli {
namespace {

using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

class OutputFile : public ::testing::Test {
 protected:
  std::string refusal(const std::filesystem::path& path) const {
    return error_of<UsageError>([&] { check_output_file(path, rule_); });
  }
  std::string folder_refusal(const std::filesystem::path& path) const {
    return error_of<UsageError>([&] { check_output_folder(path, {"a.json"}, rule_); });
  }

  TempFolder folder_;
  OutputRule rule_{"--file", {}, [](std::string_view text) { return text == "ours"; }};
};

TEST_F(OutputFile, ReplacesOnlyWhatTheCommandWrote) {
  EXPECT_EQ(refusal(folder_ / "new/deep.json"), "");
  EXPECT_EQ(refusal(folder_.write("a.json", "ours")), "");
  EXPECT_EQ(refusal(folder_.write("empty.json", "")), "");
  EXPECT_EQ(refusal("/dev/null"), "");
  const auto foreign = folder_.write("b.json", "notes");
  EXPECT_THAT(refusal(foreign), AllOf(HasSubstr("--file"), HasSubstr("b.json")));
  rule_.overwrite = true;
  EXPECT_EQ(refusal(foreign), "");
  EXPECT_EQ(read_file(foreign), "notes");
}

TEST_F(OutputFile, NeverReplacesAnInput) {
  rule_.overwrite = true;
  const auto text = folder_.write("text.txt", "a text"), recipe = folder_.write("run/r.json", "{}");
  rule_.inputs = {"", text, folder_ / "run/"};
  create_symlink(text, folder_ / "link.txt");
  create_hard_link(text, folder_ / "same.txt");
  for (const auto& path :
       {text, recipe, folder_ / "run/../run/r.json", folder_ / "link.txt", folder_ / "same.txt"})
    EXPECT_THAT(refusal(path), HasSubstr("is what the command reads")) << path;
  EXPECT_EQ(refusal(folder_ / "run/new.json"), "");
  EXPECT_EQ(refusal(folder_.write("run/a.json", "ours")), "");
  EXPECT_EQ(refusal(folder_.write("runs.json", "notes")), "") << "a beginning is not a folder";
  EXPECT_THAT(refusal(folder_.write("text.txt", "ours")), HasSubstr("reads"));
}

TEST_F(OutputFile, FindsOutBeforehandThatItCannotBeWritten) {
  const auto refused = [&](const std::filesystem::path& path) {
    return error_of([&] { check_output_file(path, rule_); });
  };
  EXPECT_THAT(refused(folder_.path()), HasSubstr("got a folder"));
  EXPECT_THAT(refused(folder_.write("a", "") / "b.json"), HasSubstr("cannot create folder"));
  EXPECT_THAT(refused("/proc/none.json"), HasSubstr("/proc/none.json"));
  EXPECT_EQ(refused(folder_ / "c.json"), "");
  EXPECT_FALSE(exists(folder_ / "c.json"));
  EXPECT_FALSE(exists(folder_ / "c.json.checked"));
}

TEST_F(OutputFile, AFolderIsNewOrEmptyOrHasBeenWrittenBefore) {
  EXPECT_EQ(folder_refusal(folder_ / "new"), "");
  create_directory(folder_ / "empty");
  EXPECT_EQ(folder_refusal(folder_ / "empty"), "");
  folder_.write("full/b.txt", "notes");
  EXPECT_THAT(folder_refusal(folder_ / "full"), HasSubstr("holds other files"));
  folder_.write("full/a.json", "notes");
  EXPECT_THAT(folder_refusal(folder_ / "full"), HasSubstr("a.json is there"));
  folder_.write("full/a.json", "ours");
  EXPECT_EQ(folder_refusal(folder_ / "full"), "");
  folder_.write("full/a.json", "notes");
  rule_.overwrite = true;
  EXPECT_EQ(folder_refusal(folder_ / "full"), "");
  rule_.inputs = {folder_ / "full"};
  EXPECT_THAT(folder_refusal(folder_.path() / "full/"), HasSubstr("is what the command reads"));
}

TEST_F(OutputFile, TwoOutputsAreTwoFiles) {
  const auto refused = [&](const std::filesystem::path& other) {
    return error_of<UsageError>([&] {
      check_distinct({{"--file", folder_ / "a.json"}, {"--csv", ""}, {"--page", other}});
    });
  };
  folder_.write("sub/x", "");
  for (const char* const same : {"a.json", "./a.json", "sub/../a.json"})
    EXPECT_THAT(refused(folder_ / same), AllOf(HasSubstr("--page"), HasSubstr("--file writes")));
  EXPECT_EQ(refused(folder_ / "b.json"), "");
  EXPECT_EQ(error_of<UsageError>(
                [] { check_distinct({{"--file", "/dev/null"}, {"--csv", "/dev/null"}}); }),
            "");
}

}  // namespace
}  // namespace xsa::cli
