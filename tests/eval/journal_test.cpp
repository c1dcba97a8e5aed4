#include "xsa/eval/journal.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa::eval {
namespace {

const Json kHeader = {{"model", "12ab"}, {"data", "34cd"}};

std::vector<Scored> two() {
  return {{3, {.log_likelihood = -1.0 / 3, .greedy = true}},
          {0, {.log_likelihood = -1e-300, .greedy = false}}};
}

std::string error_of(const std::filesystem::path& path, const Json& header = kHeader) {
  try {
    const Journal journal(path, header, 5);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Journal, KeepsScoresToTheBit) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "deep" / "scores.jsonl";
  Journal(path, kHeader, 5).add(two());
  const Journal again(path, kHeader, 5);
  ASSERT_EQ(again.scores().size(), 5u);
  EXPECT_EQ(again.scores()[3]->log_likelihood, -1.0 / 3);
  EXPECT_TRUE(again.scores()[3]->greedy);
  EXPECT_EQ(again.scores()[0]->log_likelihood, -1e-300);
  EXPECT_FALSE(again.scores()[0]->greedy);
  EXPECT_FALSE(again.scores()[1].has_value());
}

TEST(Journal, SurvivesACutAtAnyByte) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "scores.jsonl";
  Journal(path, kHeader, 5).add(two());
  const std::string whole = read_file(path);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, length);
    Journal(path, kHeader, 5).add(two());
    const Journal again(path, kHeader, 5);
    ASSERT_TRUE(again.scores()[3] && again.scores()[0]) << "cut to " << length << " bytes";
  }
}

TEST(Journal, RefusesScoresOfSomethingElse) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "scores.jsonl";
  Journal(path, kHeader, 5).add(two());
  EXPECT_EQ(error_of(path), "");
  const std::string error = error_of(path, {{"model", "other"}, {"data", "34cd"}});
  EXPECT_THAT(error, ::testing::HasSubstr("model (\"12ab\" there, \"other\" now)"));
  EXPECT_THAT(error, ::testing::Not(::testing::HasSubstr("34cd")));
}

TEST(Journal, RefusesAFileThatIsNone) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "scores.jsonl";
  for (const char* text : {"hello\n", "{}\n", "\n", "[1]\n"}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    EXPECT_THAT(error_of(path), ::testing::HasSubstr("expected scores of an evaluation"));
    EXPECT_EQ(read_file(path), text) << "a file that is not ours is not touched";
  }
}

TEST(Journal, RefusesADamagedLine) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "scores.jsonl";
  for (const char* line : {"[5,-1.0,true]", "[-1,-1.0,true]", "[1,null,true]", "[1,-1.0]", "1",
                           "[1.5,-1.0,true]", "[1,-1.0,tru"}) {
    std::filesystem::remove(path);
    Journal(path, kHeader, 5).add(two());
    std::ofstream(path, std::ios::binary | std::ios::app) << line << "\n";
    EXPECT_THAT(error_of(path), ::testing::HasSubstr("line 4: damaged")) << line;
  }
}

TEST(Journal, RefusesALineWhoseScoreWasChanged) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "scores.jsonl";
  Journal(path, kHeader, 5).add(two());
  const std::string whole = read_file(path);
  for (const auto& [from, to] :
       {std::pair{"-0.333", "-0.233"}, {"[3,", "[2,"}, {"false", "true"}}) {
    std::string changed = whole;
    changed.replace(changed.find(from), std::strlen(from), to);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    EXPECT_THAT(error_of(path), ::testing::HasSubstr(": damaged")) << from;
  }
}

TEST(Journal, LeavesAForeignFileWithoutALineAlone) {
  const testing::TempFolder folder;
  const auto path = folder.write("scores.jsonl", "hello");
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("expected scores of an evaluation"));
  EXPECT_EQ(read_file(path), "hello");
}

TEST(Journal, RefusesAFolderInUse) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "scores.jsonl";
  const Journal journal(path, kHeader, 5);
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("another evaluation is writing here"));
}

TEST(Journal, SaysWhyItCannotWrite) {
  EXPECT_THAT(error_of("/proc/none/scores.jsonl"), ::testing::HasSubstr("cannot be opened"));
  const testing::TempFolder folder;
  Journal journal(folder / "scores.jsonl", kHeader, 5);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);  // as a full disk: no further byte
  std::string error;
  try {
    journal.add(two());
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, ::testing::HasSubstr("scores.jsonl: cannot be written"));
}

}  // namespace
}  // namespace xsa::eval
