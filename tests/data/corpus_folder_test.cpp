// What becomes of a folder: broken off, continued, made otherwise, damaged, somebody else's.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/data/corpus_fixture.h"
#include "xsa/base/signals.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;

class CorpusFolder : public Corpus {};

/// Runs in a child process; its exit code is Interrupted's, or 1 for another error.
template <class Action>
pid_t in_child(const Action& action) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 0;
  try {
    action();
  } catch (const Interrupted& stopped) {
    code = stopped.exit_code();
  } catch (const std::exception&) {
    code = 1;
  }
  ::_exit(code);
}

TEST_F(CorpusFolder, AKillAtAnyMomentLeavesAFolderThatContinuesToTheSameBytes) {
  prepare_corpus(many("whole"));
  const auto whole = bytes_in("whole");
  const CorpusConfig how = many("broken");
  int kills = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = in_child([&] { prepare_corpus(how); });
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 5 * (round % 13)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    kills += WIFSIGNALED(status) ? 1 : 0;
    if (fs::exists(how.output / "manifest.json")) break;
  }
  EXPECT_GE(kills, 3);
  prepare_corpus(how);
  EXPECT_EQ(bytes_in("broken"), whole);
}

TEST_F(CorpusFolder, AskedToStopItSavesAndContinues) {
  prepare_corpus(many("whole"));
  const CorpusConfig how = many("broken");
  install_stop_handlers();
  const pid_t child = in_child([&] { prepare_corpus(how); });
  while (!fs::exists(how.output / "journal.json")) std::this_thread::sleep_for(1ms);
  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  clear_stop_signal();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
  const Json journal = read_json_file(how.output / "journal.json");
  EXPECT_LT(journal["counts"]["rows"], 1500);
  prepare_corpus(how);
  EXPECT_EQ(bytes_in("broken"), bytes_in("whole"));
}

TEST_F(CorpusFolder, AFullDiskLosesNothingThatWasSaved) {
  prepare_corpus(many("whole"));
  const CorpusConfig how = many("broken");
  const pid_t child = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1'500'000, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string reason = error_of([&] { prepare_corpus(how); });
    if (reason.find("File too large") == reason.npos || reason.find(".bin") == reason.npos)
      ::_exit(3);
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(fs::exists(how.output / "manifest.json"));
  prepare_corpus(how);
  EXPECT_EQ(bytes_in("broken"), bytes_in("whole"));
}

TEST_F(CorpusFolder, AFinishedFolderIsNotMadeAgainUnlessAsked) {
  folder_.write("a.jsonl", line_of("text"));
  const CorpusConfig how = config({"a.jsonl"});
  const Json manifest = prepare_corpus(how);
  const auto time = fs::last_write_time(how.output / "train-00000.bin");
  EXPECT_EQ(prepare_corpus(how), manifest);
  EXPECT_EQ(fs::last_write_time(how.output / "train-00000.bin"), time);
  CorpusConfig again = how;
  again.overwrite = true;
  EXPECT_EQ(prepare_corpus(again), manifest);
  EXPECT_NE(fs::last_write_time(how.output / "train-00000.bin"), time);
}

TEST_F(CorpusFolder, AnotherCommandIsRefusedWithWhatDiffers) {
  folder_.write("a.jsonl", line_of("text"));
  prepare_corpus(config({"a.jsonl"}));
  CorpusConfig how = config({"a.jsonl"});
  how.column = "body";
  folder_.write("a.jsonl", R"({"text": "text", "body": "b"})");
  EXPECT_THAT(refusal(how),
              AllOf(HasSubstr("--column was \"text\" and is \"body\""), HasSubstr("--overwrite")));
  EXPECT_THAT(refusal(config({"a.jsonl"})), HasSubstr("a.jsonl had 16 bytes and has 29"));
  how.overwrite = true;
  EXPECT_EQ(prepared(how), "|b");
}

TEST_F(CorpusFolder, SourcesThatChangedAreRefusedWithWhatDiffers) {
  folder_.write("set/a.jsonl", line_of("aaaa"));
  folder_.write("set/b.jsonl", line_of("bbbb"));
  prepare_corpus(config({"set"}));
  folder_.write("set/c.jsonl", line_of("cccc"));
  EXPECT_THAT(refusal(config({"set"})), HasSubstr("c.jsonl is new"));
  fs::remove(folder_ / "set/c.jsonl");
  fs::rename(folder_ / "set/a.jsonl", folder_ / "kept");
  EXPECT_THAT(refusal(config({"set"})), HasSubstr("a.jsonl is gone"));
  fs::rename(folder_ / "kept", folder_ / "set/a.jsonl");
  EXPECT_EQ(failure(config({"set"})), "");
  folder_.write("set/b.jsonl", line_of("bbbb"));  // the same text, another time
  EXPECT_EQ(failure(config({"set"})), "");
  folder_.write("set/b.jsonl", line_of("BBBB"));
  EXPECT_THAT(refusal(config({"set"})), HasSubstr("b.jsonl was written to since"));
}

TEST_F(CorpusFolder, OtherFilesInTheWayAreNeverRemoved) {
  folder_.write("a.jsonl", line_of("text"));
  folder_.write("out/thesis.tex", "precious");
  CorpusConfig how = config({"a.jsonl"});
  for (const bool overwrite : {false, true}) {
    how.overwrite = overwrite;
    EXPECT_THAT(refusal(how), AllOf(HasSubstr("thesis.tex"), HasSubstr("another folder")));
  }
  folder_.write("tokens/train-00000.bin", "somebody else's");
  how.output = folder_ / "tokens";
  EXPECT_THAT(refusal(how), HasSubstr("train-00000.bin"));
  EXPECT_EQ(read_file(folder_ / "tokens/train-00000.bin"), "somebody else's");
}

TEST_F(CorpusFolder, ARecordOfSomebodyElseIsRefusedAndNothingIsTouched) {
  folder_.write("a.jsonl", line_of("text"));
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  for (const char* name : {"manifest.json", "journal.json"})
    for (const std::string& content : {std::string("{\"title\": \"mine\"}"), std::string("[1]"),
                                       std::string("{\"counts\": {\"rows\": 0}}"),
                                       std::string("{\"settings\": {}, \"sources\": []}"), deep}) {
      fs::remove_all(folder_ / "out");
      folder_.write(cat("out/", name), content);
      folder_.write("out/train-00000.bin", "precious");
      const auto before = files_in("out");
      CorpusConfig how = config({"a.jsonl"});
      for (const bool overwrite : {false, true}) {
        how.overwrite = overwrite;
        EXPECT_THAT(refusal(how), AllOf(HasSubstr(name), HasSubstr("another folder"))) << content;
        EXPECT_EQ(files_in("out"), before);
      }
    }
}

TEST_F(CorpusFolder, OverwritingRemovesTheNamesThatItWritesAndNoOthers) {
  folder_.write("a.jsonl", line_of("text"));
  CorpusConfig how = config({"a.jsonl"});
  prepare_corpus(how);
  how.overwrite = true;
  for (const char* name : {"manifest.json.bak", "journal.json~", "train-000001.bin", "train-1.bin",
                           "manifest.json.partial.txt", "train-00001.bin/file"}) {
    folder_.write(cat("out/", name), "precious");
    EXPECT_THAT(refusal(how), HasSubstr(fs::path(name).begin()->string()));
    EXPECT_EQ(read_file(folder_ / cat("out/", name)), "precious");
    fs::remove_all(how.output / *fs::path(name).begin());
  }
  for (const char* name : {"manifest.json.partial", "journal.json.partial", "validation-00007.bin"})
    folder_.write(cat("out/", name), "left by a kill");
  EXPECT_EQ(prepared(how), "|text");
  EXPECT_EQ(files_in("out").size(), 2u);
}

TEST_F(CorpusFolder, WhatAKillLeftOfTheFirstJournalIsInNobodysWay) {
  folder_.write("a.jsonl", line_of("text"));
  for (const char* left :
       {"", "{\n  \"vers", "{\n  \"version\": 3,\n  \"settings\": {\n    \"ty"}) {
    fs::remove_all(folder_ / "out");
    folder_.write("out/journal.json.partial", left);
    EXPECT_EQ(prepared(config({"a.jsonl"})), "|text") << left;
  }
  fs::remove_all(folder_ / "out");
  folder_.write("out/journal.json.partial", "Dear diary");
  EXPECT_THAT(refusal(config({"a.jsonl"})), HasSubstr("journal.json.partial"));
}

TEST_F(CorpusFolder, ARecordThatIsNoJsonIsNamedAndKeptUntilOverwriting) {
  folder_.write("a.jsonl", line_of("text"));
  for (const char* name : {"manifest.json", "journal.json"})
    for (const std::string& content : {std::string(), std::string("{\n  \"na"), std::string(9, 0)})
      for (const bool alone : {false, true}) {
        CorpusConfig how = config({"a.jsonl"});
        how.overwrite = true;
        if (!alone) prepare_corpus(how);
        if (alone) fs::remove_all(how.output);
        folder_.write(cat("out/", name), content);
        how.overwrite = false;
        const auto before = files_in("out");
        EXPECT_THAT(failure(how),
                    AllOf(HasSubstr(name), HasSubstr("damaged"), HasSubstr("--overwrite")));
        folder_.write("out/thesis.tex", "precious");
        for (const bool overwrite : {false, true}) {
          how.overwrite = overwrite;
          EXPECT_THAT(refusal(how), AllOf(HasSubstr("thesis.tex"), HasSubstr("another folder")));
        }
        fs::remove(folder_ / "out/thesis.tex");
        EXPECT_EQ(files_in("out"), before);
        EXPECT_EQ(prepared(how), "|text");
      }
}

TEST_F(CorpusFolder, AFinishedFolderWithoutOneOfItsShardsIsNotFinished) {
  folder_.write("a.jsonl", line_of("text"));
  for (const char* format : {"llmc", "nanogpt"}) {
    CorpusConfig how = config({"a.jsonl"}, format);
    how.format = format;
    const Json manifest = prepare_corpus(how);
    const fs::path shard = how.output / manifest["train"]["shards"][0]["file"].get<std::string>();
    const std::string whole = read_file(shard);
    const auto expected = HasSubstr(cat("expected a finished shard of ", whole.size(), " bytes"));
    for (const std::string& bytes : {std::string(), whole.substr(1), whole + "x"}) {
      std::ofstream(shard, std::ios::binary) << bytes;
      EXPECT_THAT(failure(how),
                  AllOf(HasSubstr(shard.string()), expected,
                        HasSubstr(cat("got ", bytes.size(), ";")), HasSubstr("--overwrite")));
    }
    fs::remove(shard);
    EXPECT_THAT(failure(how), AllOf(HasSubstr(shard.string()), expected, HasSubstr("No such file"),
                                    HasSubstr("--overwrite")));
    how.overwrite = true;
    EXPECT_EQ(prepare_corpus(how), manifest);
  }
}

TEST_F(CorpusFolder, AFinishedShardThatChangesBeforeTheRunContinuesIsNamed) {
  folder_.write("a.jsonl", line_of(made_text(1, 25'000)) + "{\"text\": 1}\n");
  CorpusConfig how = config({"a.jsonl"});
  how.shard_tokens = 10'000;
  how.type = "jsonl";
  EXPECT_THAT(failure(how), HasSubstr("row 1"));
  how.on_bad_row = "skip";
  const fs::path shard = how.output / "train-00001.bin";
  const std::string whole = read_file(shard);
  std::string changed = whole;
  changed[2000] ^= 1;
  std::ofstream(shard, std::ios::binary) << changed;
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(failure(how), AllOf(HasSubstr(shard.string()), HasSubstr("expected SHA-256"),
                                    HasSubstr("--overwrite")));
  EXPECT_FALSE(fs::exists(how.output / "manifest.json"));
  std::ofstream(shard, std::ios::binary) << whole;
  EXPECT_EQ(failure(how), "");
}

TEST_F(CorpusFolder, ADamagedRecordIsNamedWithWhatToDo) {
  folder_.write("a.jsonl", line_of("one") + "{\"text\": 1}\n");
  CorpusConfig how = config({"a.jsonl"});
  const auto with_damage = [&](const char* name, const auto& expect) {
    const Json whole = read_json_file(how.output / name);
    const Json flat = whole.flatten();
    for (const auto& [path, value] : flat.items())
      for (const Json& other : {Json(), Json(-1), Json("x"), Json(0.5), Json::array({1})}) {
        Json changed = whole;
        changed[Json::json_pointer(path)] = other;
        write_json_file(how.output / name, changed);
        const std::string error = failure(how);
        EXPECT_THAT(error, expect(cat(how.output.string(), "/", name))) << path << other;
      }
    write_json_file(how.output / name, whole);
  };
  EXPECT_THAT(failure(how), HasSubstr("row 1"));
  with_damage("journal.json", [](const std::string& path) {
    const auto unharmed = HasSubstr("a.jsonl: row 1");  // some fields are no matter
    return AnyOf(unharmed, AllOf(HasSubstr(path), HasSubstr("--overwrite")),
                 AllOf(HasSubstr("made otherwise"), HasSubstr("--overwrite")));
  });
  how.on_bad_row = "skip";
  prepare_corpus(how);
  for (const char* key : {"train", "validation", "counts", "passed_over"}) {
    Json changed = read_json_file(how.output / "manifest.json");
    changed[key] = "x";
    write_json_file(how.output / "manifest.json", changed);
    EXPECT_THAT(failure(how),
                AllOf(HasSubstr("manifest.json"), HasSubstr("damaged"), HasSubstr("--overwrite")));
    how.overwrite = true;
    EXPECT_EQ(prepared(how), "|one");
    how.overwrite = false;
  }
}

TEST_F(CorpusFolder, AFileThatIsNotYetBegunMayChange) {
  folder_.write("set/a.jsonl", line_of("one") + "{\"text\": 1}\n");
  folder_.write("set/b.jsonl", line_of("two"));
  CorpusConfig how = config({"set"});
  EXPECT_THAT(failure(how), HasSubstr("a.jsonl: row 1"));
  folder_.write("set/b.jsonl", line_of("two") + line_of("three"));
  how.on_bad_row = "skip";
  const Json manifest = prepare_corpus(how);
  EXPECT_EQ(text_of(manifest, "train"), "|one|two|three");
  EXPECT_EQ(manifest["sources"][1]["bytes"], 32);
  EXPECT_EQ(prepare_corpus(how), manifest);
}

TEST_F(CorpusFolder, TwoAtOnceInAFolderAreRefused) {
  folder_.write("a.jsonl", line_of("x"));
  const CorpusConfig how = config({"a.jsonl"});
  fs::create_directories(how.output);
  const pid_t child = in_child([&] {
    const int fd = ::open(how.output.c_str(), O_RDONLY);
    ::flock(fd, LOCK_EX);
    std::ofstream(folder_ / "locked") << "yes";
    ::pause();
  });
  while (!fs::exists(folder_ / "locked")) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(refusal(how), HasSubstr("another xsa prepare"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(prepared(how), "|x");
}

TEST_F(Corpus, AFolderThatMayNotBeWrittenToIsCalledThat) {
  folder_.write("a.txt", "text");
  const fs::path output = folder_ / "out";
  fs::create_directory(output);
  fs::permissions(output, fs::perms(0555));
  fs::permissions(folder_.path(), fs::perms(0755));
  const bool is_root = ::geteuid() == 0;  // who may write everywhere
  ASSERT_EQ(::seteuid(is_root ? 65534 : ::geteuid()), 0);
  const std::string message = failure(config({"a.txt"}));
  ASSERT_EQ(::seteuid(is_root ? 0 : ::geteuid()), 0);
  EXPECT_THAT(message, AllOf(HasSubstr("out: expected a folder that may be written to"),
                             HasSubstr("Permission denied"), HasSubstr("--output")));
}

TEST_F(Corpus, AFileInTheFoldersPlaceIsCalledThat) {
  folder_.write("a.txt", "text");
  folder_.write("out", "a file");
  EXPECT_THAT(failure(config({"a.txt"})), HasSubstr("out: expected a folder, got a file"));
}

TEST_F(Corpus, NothingIsClearedForSourcesThatAreEmpty) {
  folder_.write("a.txt", "text");
  prepared(config({"a.txt"}));
  const auto before = files_in("out");
  folder_.write("b.txt", "");
  folder_.write("c.txt", "");
  CorpusConfig how = config({"b.txt", "c.txt"});
  how.overwrite = true;
  EXPECT_THAT(failure(how), AllOf(HasSubstr("b.txt"), HasSubstr("expected text, got nothing")));
  EXPECT_EQ(files_in("out"), before);
}

TEST_F(Corpus, AFinishedFolderIsHeldToItsManifest) {
  folder_.write("a.txt", "some text that is long enough");
  const CorpusConfig how = config({"a.txt"});
  prepared(how);
  EXPECT_EQ(failure(how), "");
  std::string bytes = read_file(how.output / "train-00000.bin");
  bytes[1030] ^= 1;
  std::ofstream(how.output / "train-00000.bin", std::ios::binary) << bytes;
  EXPECT_THAT(failure(how),
              AllOf(HasSubstr("train-00000.bin: expected SHA-256"), HasSubstr("--overwrite")));
}

TEST_F(Corpus, OverwritingRemovesWhatTrainingAndAKillLeft) {
  folder_.write("a.txt", "text");
  CorpusConfig how = config({"a.txt"});
  prepared(how);
  folder_.write("out/.verified.json", "{}");
  folder_.write("out/.sides/train-00000.bin", "");
  how.overwrite = true;
  EXPECT_EQ(prepared(how), "|text");
  EXPECT_FALSE(fs::exists(how.output / ".verified.json"));
  EXPECT_FALSE(fs::exists(how.output / ".sides"));
}

}  // namespace
}  // namespace xsa::data
