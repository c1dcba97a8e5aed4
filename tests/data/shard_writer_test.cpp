#include "xsa/data/shard_writer.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <numeric>
#include <set>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

using Tokens = std::vector<std::uint16_t>;

Tokens counting(std::size_t count, std::uint16_t first = 0) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Tokens tokens_in(const fs::path& path, ShardFormat format = ShardFormat::kLlmC) {
  const Shard shard(path, format);
  Tokens tokens(static_cast<std::size_t>(shard.size()));
  shard.read(0, tokens);
  return tokens;
}

std::vector<std::string> files_in(const TempFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ShardWriter, JoinsPiecesIntoOneShard) {
  const TempFolder folder;
  ShardWriter writer(folder / "a.bin", ShardFormat::kLlmC);
  writer.add(Tokens{1, 2});
  writer.add(Tokens{});
  writer.add(counting(300'000));
  writer.finish();
  EXPECT_EQ(writer.size(), 300'002);
  Tokens expected = counting(300'000);
  expected.insert(expected.begin(), {1, 2});
  EXPECT_EQ(tokens_in(folder / "a.bin"), expected);
}

TEST(ShardWriter, IsRefusedByReadersUntilItIsFinished) {
  const TempFolder folder;
  {
    ShardWriter writer(folder / "a.bin", ShardFormat::kLlmC);
    writer.add(Tokens{1, 2});
    writer.sync();
  }
  EXPECT_THAT(error_of([&] { Shard(folder / "a.bin"); }), HasSubstr("magic"));
}

TEST(ShardWriter, ContinuesWhereItIsToldTo) {
  const TempFolder folder;
  for (const auto format : {ShardFormat::kLlmC, ShardFormat::kNanoGpt}) {
    const fs::path path = folder / "a.bin";
    {
      ShardWriter writer(path, format);
      writer.add(counting(10));
      writer.finish();
    }
    ShardWriter writer(path, format, 4);
    writer.add(Tokens{77});
    writer.finish();
    EXPECT_THAT(tokens_in(path, format), ElementsAre(0, 1, 2, 3, 77));
    EXPECT_THAT(error_of([&] { ShardWriter(path, format, 6); }),
                AllOf(HasSubstr("a.bin"), HasSubstr("expected at least")));
    fs::remove(path);
  }
}

TEST(ShardWriter, AFullDiskIsAnErrorAndNothingIsWrittenTwice) {
  const TempFolder folder;
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  {
    ShardWriter writer(folder / "a.bin", ShardFormat::kLlmC);
    writer.add(counting(1000));
    writer.sync();
    rlimit small{5000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_THAT(error_of([&] { writer.add(counting(200'000)); }),
                AllOf(HasSubstr("a.bin"), HasSubstr("File too large")));
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_THAT(error_of([&] { writer.sync(); }), HasSubstr("earlier write failed"));
  }
  ShardWriter writer(folder / "a.bin", ShardFormat::kLlmC, 1000);
  writer.finish();
  EXPECT_EQ(tokens_in(folder / "a.bin"), counting(1000));
  ::signal(SIGXFSZ, previous);
}

TEST(SplitWriter, CutsShardsAtTheirSize) {
  const TempFolder folder;
  SplitWriter writer(folder.path(), false, ShardFormat::kLlmC, 4);
  writer.add(counting(6));
  writer.end_document(5);
  writer.add(counting(2, 6));
  writer.end_document(2);
  const Json entry = writer.finish();
  EXPECT_THAT(files_in(folder), ElementsAre("train-00000.bin", "train-00001.bin"));
  EXPECT_THAT(tokens_in(folder / "train-00001.bin"), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(entry["tokens"], 8);
  EXPECT_EQ(entry["documents"], 2);
  EXPECT_EQ(entry["bytes"], 7);
  const std::string bytes = read_file(folder / "train-00000.bin");
  EXPECT_EQ(entry["shards"][0]["sha256"], sha256(std::as_bytes(std::span(bytes))));
}

TEST(SplitWriter, ManyShardsAreHashedByFewThreads) {
  const TempFolder folder;
  SplitWriter writer(folder.path(), false, ShardFormat::kLlmC, 4);
  const auto mappings = [] {  // a thread's stack stays until it is joined
    const std::string maps = read_file("/proc/self/maps");
    return std::count(maps.begin(), maps.end(), '\n');
  };
  const auto before = mappings();
  writer.add(counting(400));
  EXPECT_LE(mappings(), before + 50);
  EXPECT_EQ(writer.finish()["shards"].size(), 100u);
}

TEST(SplitWriter, TellsWhatItHashesAtTheEnd) {
  const TempFolder folder;
  SplitWriter writer(folder.path(), false, ShardFormat::kLlmC, 4);
  writer.add(counting(6));
  std::set<std::string> hashed;
  writer.finish([&](const fs::path& file) { hashed.insert(file.filename().string()); });
  EXPECT_THAT(hashed, ElementsAre("train-00000.bin", "train-00001.bin"));
}

TEST(SplitWriter, NanoGptHasOneFileASplit) {
  const TempFolder folder;
  for (const bool validation : {false, true}) {
    SplitWriter writer(folder.path(), validation, ShardFormat::kNanoGpt, 4);
    writer.add(counting(6));
    EXPECT_EQ(writer.finish()["shards"].size(), 1u);
  }
  EXPECT_THAT(files_in(folder), ElementsAre("train.bin", "val.bin"));
  EXPECT_EQ(read_file(folder / "val.bin"), std::string("\0\0\1\0\2\0\3\0\4\0\5\0", 12));
}

TEST(SplitWriter, AnyEarlierStateCanBeRestored) {
  for (const auto format : {ShardFormat::kLlmC, ShardFormat::kNanoGpt}) {
    const TempFolder folder;
    Rng rng(5);
    std::vector<Tokens> parts;
    for (std::uint16_t i = 0; i < 30; ++i)
      parts.push_back(counting(rng.below(5), static_cast<std::uint16_t>(100 * i)));
    std::vector<SplitState> states;
    Json whole;
    {
      SplitWriter writer(folder.path(), false, format, 7);
      for (const Tokens& part : parts) {
        states.push_back(writer.state());
        writer.add(part);
      }
      whole = writer.finish();
    }
    for (std::size_t round = 0; round < 30; ++round) {
      const std::size_t at = rng.below(states.size());
      SplitWriter writer(folder.path(), false, format, 7);  // as another process
      writer.restore(states[at]);
      writer.add(counting(rng.below(40), 5000));  // which is taken back
      writer.restore(states[at]);
      for (std::size_t i = at; i < parts.size(); ++i) writer.add(parts[i]);
      ASSERT_EQ(writer.finish(), whole) << at;
    }
    SplitWriter writer(folder.path(), false, format, 7);
    writer.restore({});
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

TEST(SplitWriter, WhatIsNotYetInTheFileSurvivesTakingBackWhatCameAfter) {
  for (const std::size_t taken_back : {std::size_t{1}, std::size_t{60'000}, std::size_t{200'000}}) {
    const TempFolder folder;
    SplitWriter writer(folder.path(), false, ShardFormat::kLlmC, 1'000'000);
    writer.add(counting(100'000));
    const SplitState state = writer.state();
    for (int again = 0; again < 2; ++again) {
      writer.add(counting(taken_back));
      writer.restore(state);
    }
    writer.add(Tokens{7});
    writer.finish();
    Tokens expected = counting(100'000);
    expected.push_back(7);
    EXPECT_EQ(tokens_in(folder / "train-00000.bin"), expected) << taken_back;
  }
}

TEST(SplitWriter, AShardThatIsGoneIsNamed) {
  const TempFolder folder;
  SplitWriter writer(folder.path(), true, ShardFormat::kLlmC, 4);
  writer.add(counting(9));
  const SplitState state = writer.state();
  fs::remove(folder / "validation-00001.bin");
  EXPECT_THAT(error_of([&] { writer.restore(state); }),
              AllOf(HasSubstr("validation-00001.bin"), HasSubstr("--overwrite")));
}

TEST(SplitWriter, AShardThatAnotherProcessHasFinishedMustHaveItsHash) {
  const TempFolder folder;
  SplitState state;
  std::vector<std::string> hashes;
  {
    SplitWriter writer(folder.path(), false, ShardFormat::kLlmC, 4);
    writer.add(counting(9));
    writer.sync();
    state = writer.state();
    hashes = writer.sha256();
  }
  ASSERT_EQ(hashes.size(), 2u);
  for (const bool known : {true, false}) {
    SplitWriter writer(folder.path(), false, ShardFormat::kLlmC, 4);
    writer.restore(state);
    writer.expect(known ? std::vector<std::string>{hashes[0], std::string(64, '0')}
                        : std::vector<std::string>{hashes[0], ""});
    writer.add(counting(4));
    EXPECT_EQ(writer.sha256().size(), 3u);
    EXPECT_EQ(writer.sha256()[0], hashes[0]);
    const std::string error = error_of([&] { writer.finish(); });
    if (known) {
      EXPECT_THAT(error, AllOf(HasSubstr("train-00001.bin"), HasSubstr("got " + hashes[1]),
                               HasSubstr("--overwrite")));
    } else {
      EXPECT_EQ(error, "");
    }
  }
}

TEST(TokenFiles, AreToldFromOthers) {
  for (const char* name : {"train.bin", "val.bin", "train-00000.bin", "validation-123456.bin"})
    EXPECT_TRUE(is_token_file(name)) << name;
  for (const char* name :
       {"test.bin", "train-0.bin", "train-0000x.bin", "x-00000.bin", "train-.bin"})
    EXPECT_FALSE(is_token_file(name)) << name;
}

}  // namespace
}  // namespace xsa::data
