#include "xsa/data/dataset.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <thread>

#include "tests/support/temp_folder.h"
#include "xsa/base/hash.h"
#include "xsa/base/rng.h"
#include "xsa/base/signals.h"
#include "xsa/data/prepare.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

/// A source and a cache in a folder of their own.
class DatasetTest : public ::testing::Test {
 protected:
  Dataset open(double fraction = 0.1) const { return open_dataset(config(fraction)); }
  DataConfig config(double fraction = 0.1) const {
    DataConfig config;
    config.source = source_.string();
    config.cache = (folder_ / "cache").string();
    config.validation_fraction = fraction;
    return config;
  }
  std::string error() const {
    return error_of([&] { open(); });
  }
  /// Text files of a folder "texts".
  void write(const std::string& name, std::string_view content) {
    folder_.write("texts/" + name, content);
  }
  /// The made folders (not what stands hidden beside them).
  std::vector<fs::path> made() const {
    std::vector<fs::path> folders;
    if (!exists(folder_ / "cache")) return folders;
    for (const fs::path& path : fs::directory_iterator(folder_ / "cache"))
      if (!path.filename().string().starts_with('.')) folders.push_back(path);
    return folders;
  }
  /// What the cache holds beside made folders and locks.
  std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const fs::path& path : fs::directory_iterator(folder_ / "cache"))
      if (path.filename().string().starts_with('.') && path.extension() != ".lock")
        names.push_back(path.filename());
    return names;
  }

  TempFolder folder_;
  fs::path source_ = folder_ / "texts";
};

/// The text behind a split, '|' for end of text.
std::string text_of(const Split& split) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(split.tokens.size()));
  split.tokens.read(0, ids);
  std::string text;
  for (const std::int64_t id : ids) text += id == 256 ? '|' : static_cast<char>(id);
  return text;
}

/// Lines "line 0", "line 1", ...
std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += cat("line ", i, "\n");
  return text;
}

std::string sha256_of(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

void touch(const fs::path& path) { last_write_time(path, last_write_time(path) + 5s); }

TEST_F(DatasetTest, HoldsOutTheEndOfAFile) {
  source_ = folder_.write("novel.txt", lines(10));
  const Dataset dataset = open(0.3);
  EXPECT_EQ(text_of(dataset.train), "|" + lines(7));
  EXPECT_EQ(text_of(dataset.validation), "|line 7\nline 8\nline 9\n");
  EXPECT_EQ(dataset.train.bytes, 49);
  EXPECT_EQ(dataset.validation.bytes, 21);
  EXPECT_EQ(dataset.tokenizer->name(), "byte");
  EXPECT_EQ(dataset.manifest["sources"][0]["validation_begins_at"], 49);
}

TEST_F(DatasetTest, TakesAFolderWithOneFileAsThatFile) {
  write("novel.txt", lines(10));
  write("empty.txt", "");
  EXPECT_EQ(text_of(open(0.3).validation), "|line 7\nline 8\nline 9\n");
}

TEST_F(DatasetTest, HoldsOutWholeDocumentsOfAFolder) {
  std::string train, validation;
  std::set<std::string> names;
  for (int i = 0; i < 40; ++i) names.insert(cat(i % 3, "/", i, ".txt"));
  for (const std::string& name : names) {
    write(name, "this is " + name);
    (place_of(name) < 0.2 ? validation : train) += "|this is " + name;
  }
  const Dataset dataset = open(0.2);
  EXPECT_EQ(text_of(dataset.train), train);
  EXPECT_EQ(text_of(dataset.validation), validation);
  EXPECT_EQ(dataset.train.bytes,
            static_cast<std::int64_t>(train.size()) - std::count(train.begin(), train.end(), '|'));
}

TEST_F(DatasetTest, LeavesOutCopiesSoThatNoHeldOutTextIsTrainedOn) {
  write("a.txt", "same");
  write("b.txt", "other");
  write("c.txt", "same");
  write("d.txt", "");
  const Dataset dataset = open();
  EXPECT_EQ(dataset.train.bytes + dataset.validation.bytes, 9);
  const Json& rows = dataset.manifest["sources"];
  EXPECT_EQ(rows[2]["left_out"], "copy of a.txt");
  EXPECT_EQ(rows[3]["left_out"], "empty");
}

TEST_F(DatasetTest, WritesAManifestThatSaysAll) {
  source_ = folder_.write("novel.txt", lines(10));
  const Json manifest = open(0.3).manifest;
  ASSERT_EQ(made().size(), 1u);
  EXPECT_EQ(manifest, read_json_file(made()[0] / "manifest.json"));
  EXPECT_EQ(manifest["name"], "novel.txt");
  EXPECT_EQ(manifest["tokenizer"], "byte");
  EXPECT_EQ(manifest["vocabulary_size"], 257);
  EXPECT_EQ(manifest["sources"][0]["sha256"], sha256_of(lines(10)));
  EXPECT_EQ(manifest["sources"][0]["bytes"], 70);
  const Json& shard = manifest["train"]["shards"][0];
  EXPECT_EQ(shard["tokens"], 50);
  EXPECT_EQ(shard["sha256"],
            sha256(MappedFile(made()[0] / shard["file"].get<std::string>()).bytes()));
}

TEST_F(DatasetTest, SpreadsLongTextOverShardsOfLimitedSize) {
  source_ = folder_.write("novel.txt", lines(500));
  const Source source = find_source(config());
  fs::create_directory(folder_ / "out");
  prepare(source, config(), *text::make_tokenizer("byte"), folder_ / "out", 1000);
  const Json manifest = read_json_file(folder_ / "out/manifest.json");
  std::vector<fs::path> paths;
  for (const Json& shard : manifest["train"]["shards"])
    paths.push_back(folder_ / "out" / shard["file"].get<std::string>());
  ASSERT_GT(paths.size(), 2u);
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) EXPECT_EQ(Shard(paths[i]).size(), 1000);
  EXPECT_EQ(text_of({TokenStream(paths)}), text_of(open().train));
}

TEST_F(DatasetTest, ServesASecondOpenFromTheCache) {
  source_ = folder_.write("novel.txt", lines(10));
  const std::string first = text_of(open().train);
  ASSERT_EQ(made().size(), 1u);
  for (const fs::path& path : fs::directory_iterator(made()[0]))
    last_write_time(path, fs::file_time_type::min() + 24h * 36500);
  const auto before = last_write_time(made()[0] / "manifest.json");
  EXPECT_EQ(text_of(open().train), first);
  EXPECT_EQ(last_write_time(made()[0] / "manifest.json"), before);
  EXPECT_EQ(last_write_time(made()[0] / "train-00000.bin"), before);
}

TEST_F(DatasetTest, KeepsTheShardsOfASourceThatWasOnlyTouched) {
  source_ = folder_.write("novel.txt", lines(10));
  open();
  const fs::path shard = made()[0] / "train-00000.bin";
  const auto before = last_write_time(shard) - 1h;
  last_write_time(shard, before);
  touch(source_);
  const Dataset dataset = open();
  EXPECT_EQ(last_write_time(shard), before);
  EXPECT_EQ(dataset.manifest["sources"][0]["modified_ns"],
            find_source(config()).files[0].modified_ns)
      << "so that the next open need not hash";
}

TEST_F(DatasetTest, MakesAnewWhatHasChanged) {
  write("a.txt", "first");
  write("b.txt", "other");
  const auto all = [&] {
    const Dataset dataset = open();
    std::string text = text_of(dataset.train) + text_of(dataset.validation);
    std::sort(text.begin(), text.end());
    return text;
  };
  const auto sorted = [](std::string text) {
    std::sort(text.begin(), text.end());
    return text;
  };
  EXPECT_EQ(all(), sorted("|first|other"));
  write("a.txt", "FIRST");  // the same size
  touch(source_ / "a.txt");
  EXPECT_EQ(all(), sorted("|FIRST|other"));
  write("a.txt", "longer than before");
  EXPECT_EQ(all(), sorted("|longer than before|other"));
  write("c.txt", "new");
  EXPECT_EQ(all(), sorted("|longer than before|other|new"));
  remove(source_ / "b.txt");
  EXPECT_EQ(all(), sorted("|longer than before|new"));
  rename(source_ / "c.txt", source_ / "d.txt");
  EXPECT_EQ(all(), sorted("|longer than before|new"));
  EXPECT_EQ(made().size(), 1u);
  EXPECT_THAT(left_behind(), ElementsAre());
}

TEST_F(DatasetTest, KeepsOtherSplitsAndSourcesApart) {
  source_ = folder_.write("novel.txt", lines(10));
  open(0.3);
  open(0.2);
  source_ = folder_.write("other/novel.txt", lines(10));
  open(0.2);
  EXPECT_EQ(made().size(), 3u);
}

TEST_F(DatasetTest, KeepsTheOldShardsWhenTheChangedSourceIsBad) {
  source_ = folder_.write("novel.txt", lines(10));
  open();
  const fs::path shard = made()[0] / "train-00000.bin";
  const std::string before = read_file(shard);
  folder_.write("novel.txt", std::string_view("binary\0", 7));
  EXPECT_THAT(error(), AllOf(HasSubstr("novel.txt"), HasSubstr("NUL byte at 6")));
  EXPECT_EQ(read_file(shard), before);
  EXPECT_THAT(left_behind(), ElementsAre());
}

TEST_F(DatasetTest, LeavesNothingBehindForABadSource) {
  write("good.txt", lines(10));
  write("picture.png", std::string_view("\x89PNG\0\0", 6));
  EXPECT_THAT(error(), AllOf(HasSubstr("picture.png"), HasSubstr("leave it out")));
  EXPECT_TRUE(made().empty());
  EXPECT_THAT(left_behind(), ElementsAre());
}

TEST_F(DatasetTest, RefusesTextTooShortToPredict) {
  source_ = folder_.write("one.txt", "x");
  EXPECT_THAT(error(),
              AllOf(HasSubstr("one.txt"), HasSubstr("at least 2 bytes"), HasSubstr("got 1")));
  source_ = folder_.write("two.txt", "xy");
  EXPECT_EQ(error(), "");
}

TEST_F(DatasetTest, ReadsOneHugeLine) {
  std::string text;
  while (text.size() < 3'000'000) text += "\xE6\xB0\xB4";
  source_ = folder_.write("line.txt", text);
  const Dataset dataset = open();
  EXPECT_EQ(text_of(dataset.train) + text_of(dataset.validation).substr(1), "|" + text);
  EXPECT_EQ(dataset.train.bytes % 3, 0);
  EXPECT_NEAR(static_cast<double>(dataset.validation.bytes), 300'000, 3);
}

TEST_F(DatasetTest, ReturnsRandomTextUnchanged) {
  Rng rng(5);
  for (int round = 0; round < 20; ++round) {
    std::string text(2 + rng.below(3000), ' ');
    for (char& byte : text)
      byte = rng.below(20) == 0 ? '\n' : static_cast<char>(1 + rng.below(126));
    std::replace(text.begin(), text.end(), '|', '/');
    source_ = folder_.write(cat(round, ".txt"), text);
    const Dataset dataset = open();
    ASSERT_EQ(text_of(dataset.train) + text_of(dataset.validation).substr(1), "|" + text);
  }
}

TEST_F(DatasetTest, DoesNotReadItsOwnCacheInsideTheSource) {
  write("a.txt", "first");
  write("b.txt", "other");
  DataConfig inside = config();
  inside.cache = source_.string();
  open_dataset(inside);
  const Dataset again = open_dataset(inside);
  EXPECT_EQ(again.manifest["sources"].size(), 2u);
  EXPECT_EQ(again.train.bytes + again.validation.bytes, 10);
}

TEST_F(DatasetTest, SaysHowToRepairADamagedCache) {
  source_ = folder_.write("novel.txt", lines(10));
  open();
  const fs::path shard = made()[0] / "train-00000.bin", manifest = made()[0] / "manifest.json";
  const std::string good = read_file(shard), good_manifest = read_file(manifest);
  const auto remedy = HasSubstr("it is made again");
  resize_file(shard, 1030);
  EXPECT_THAT(error(), AllOf(HasSubstr("train-00000.bin"), HasSubstr("file size"), remedy));
  write_shard(shard, std::vector<text::Token>{1, 2, 3});
  EXPECT_THAT(error(), AllOf(HasSubstr("as its manifest says, got 3"), remedy));
  remove(shard);
  EXPECT_THAT(error(), HasSubstr("train-00000.bin"));
  atomic_write(shard, good);
  EXPECT_EQ(error(), "");
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string("{\"sources\": 3}"),
        good_manifest.substr(0, good_manifest.size() / 2)}) {
    atomic_write(manifest, bad);
    EXPECT_THAT(error(), AllOf(HasSubstr("manifest.json"), remedy)) << bad;
  }
}

TEST_F(DatasetTest, SaysThatTheCacheCannotBeUsed) {
  source_ = folder_.write("novel.txt", lines(10));
  folder_.write("cache", "a file");
  EXPECT_THAT(error(), AllOf(HasSubstr("cache"), HasSubstr("data.cache")));
}

TEST_F(DatasetTest, SuggestsTheNearestTokenizer) {
  DataConfig bad = config();
  bad.tokenizer = "bite";
  EXPECT_THAT(error_of<UsageError>([&] { open_dataset(bad); }), HasSubstr("did you mean 'byte'?"));
}

/// Runs `action` in a process of its own.
template <class Action>
pid_t in_child(Action&& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      action();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  return child;
}

bool has_ended(pid_t child) {
  siginfo_t found{};
  return ::waitid(P_PID, static_cast<id_t>(child), &found, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         found.si_pid == child;
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(DatasetTest, MayBeMadeBySeveralProcessesAtOnce) {
  const std::string body = lines(50'000);
  for (int round = 0; round < 3; ++round) {  // missing at first, then stale
    source_ = folder_.write("novel.txt", cat(body, "round ", round));
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i)
      children.push_back(in_child([&] {
        const Dataset dataset = open();
        const std::string end = text_of(dataset.validation);
        check(end.ends_with(cat("round ", round)), "wrong end");
        check(text_of(dataset.train) + end.substr(1) == "|" + body + cat("round ", round),
              "wrong text");
      }));
    for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
    EXPECT_EQ(made().size(), 1u);
    EXPECT_THAT(left_behind(), ElementsAre());
  }
}

TEST_F(DatasetTest, IsWholeAfterAKillAtAnyMoment) {
  const std::string body = lines(20'000);
  int interrupted = 0;
  for (int round = 0; round < 10; ++round) {
    const std::string text = cat(body, "round ", round);
    source_ = folder_.write("novel.txt", text);
    const pid_t child = in_child([&] { open(); });
    const auto is_making = [&] { return exists(folder_ / "cache") && !left_behind().empty(); };
    while (!is_making() && !has_ended(child)) std::this_thread::yield();
    for (int turns = 0; turns < 20 * round; ++turns) std::this_thread::yield();
    ::kill(child, SIGKILL);
    status_of(child);
    interrupted += is_making() ? 1 : 0;
    for (const fs::path& made_folder : made())  // an earlier one or the new one, whole
      ASSERT_NO_THROW(Shard(made_folder / "train-00000.bin")) << round;
    const Dataset dataset = open();
    ASSERT_EQ(text_of(dataset.train) + text_of(dataset.validation).substr(1), "|" + text) << round;
    EXPECT_THAT(left_behind(), ElementsAre());
  }
  EXPECT_GT(interrupted, 0);  // else this test tries nothing
}

TEST_F(DatasetTest, StopsWhenAskedToAndLeavesNothing) {
  source_ = folder_.write("novel.txt", lines(10));
  install_stop_handlers();
  ::raise(SIGTERM);
  EXPECT_THAT(error_of<Interrupted>([&] { open(); }), HasSubstr("stopped while preparing data"));
  clear_stop_signal();
  EXPECT_TRUE(made().empty());
  EXPECT_THAT(left_behind(), ElementsAre());
  EXPECT_EQ(error(), "");
}

TEST_F(DatasetTest, HoldsOutFourWorksOfShakespeareAndTrainsOnNoneOfTheirText) {
  DataConfig shakespeare = config();
  shakespeare.source = "shakespeare";
  std::optional<Source> source;
  try {
    source = find_source(shakespeare);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const Dataset dataset = open_dataset(shakespeare);
  std::vector<std::string> held;
  for (const Json& row : dataset.manifest["sources"])
    if (row.at("split") == "validation") held.push_back(row["path"]);
  EXPECT_THAT(held, ElementsAre("henry_vi_part_2_gut.txt", "lovers_complaint_gut.txt",
                                "timon_of_athens_gut.txt", "winters_tale_gut.txt"));
  EXPECT_EQ(dataset.train.bytes, 4'630'639);
  EXPECT_EQ(dataset.validation.bytes, 426'559);
  const std::string train = text_of(dataset.train);
  EXPECT_EQ(std::count(train.begin(), train.end(), '|'), 38);
  std::string validation;
  for (const std::string& name : held)
    validation += "|" + read_file(source->files[0].path.parent_path() / name);
  EXPECT_EQ(text_of(dataset.validation), validation);
  for (std::size_t at = 1000; at + 100 < validation.size(); at += 10'007)
    ASSERT_EQ(train.find(validation.substr(at, 100)), std::string::npos)
        << validation.substr(at, 100);
}

}  // namespace
}  // namespace xsa::data
