#include "xsa/data/shard.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>

#include "tests/support/temp_folder.h"
#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

/// A whole shard, built from the format's description and not by write_shard.
std::string shard_bytes(const std::vector<std::uint16_t>& tokens) {
  std::string bytes("\x88\xD8\x34\x01\x01\x00\x00\x00", 8);  // 20240520, 1
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(tokens.size() >> shift);
  bytes.resize(1024, '\0');
  for (const std::uint16_t id : tokens) {
    bytes += static_cast<char>(id & 255);
    bytes += static_cast<char>(id >> 8);
  }
  return bytes;
}

std::string with_field(std::string bytes, std::size_t index, std::int32_t value) {
  std::memcpy(bytes.data() + 4 * index, &value, sizeof value);
  return bytes;
}

std::vector<std::uint16_t> tokens_of(const Shard& shard) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(shard.size()));
  shard.read(0, tokens);
  return tokens;
}

std::vector<std::int64_t> read(const TokenStream& stream, std::int64_t begin, std::size_t count) {
  std::vector<std::int64_t> out(count, -1);
  stream.read(begin, out);
  return out;
}

TEST(WriteShard, WritesTheFormatToTheByte) {
  const TempFolder folder;
  write_shard(folder / "a.bin", std::vector<text::Token>{0, 258, 65535});
  EXPECT_EQ(read_file(folder / "a.bin"), shard_bytes({0, 258, 65535}));
}

TEST(WriteShard, LeavesNothingButTheShard) {
  const TempFolder folder;
  write_shard(folder / "a.bin", std::vector<text::Token>{1});
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(WriteShard, RefusesAnIdThatNeedsMoreThanTwoBytesAndKeepsTheOldShard) {
  const TempFolder folder;
  const auto path = folder.write("a.bin", shard_bytes({5}));
  EXPECT_THAT(error_of([&] { write_shard(path, std::vector<text::Token>{1, 65536}); }),
              AllOf(HasSubstr("a.bin"), HasSubstr("up to 65535, got 65536")));
  EXPECT_EQ(read_file(path), shard_bytes({5}));
  EXPECT_FALSE(exists(folder / "a.bin.partial"));
}

TEST(WriteShard, SaysWhyItCannotWrite) {
  const TempFolder folder;
  folder.write("no", "a file");
  EXPECT_THAT(error_of([&] { write_shard(folder / "no/a.bin", std::vector<text::Token>{1}); }),
              AllOf(HasSubstr("no"), HasSubstr("Not a directory")));
}

TEST(Shard, ReadsTheFormatByHand) {
  const TempFolder folder;
  const Shard shard(folder.write("a.bin", shard_bytes({0, 256, 65535})));
  EXPECT_EQ(shard.size(), 3);
  EXPECT_THAT(tokens_of(shard), ElementsAre(0, 256, 65535));
}

TEST(Shard, ReturnsRandomTokensUnchanged) {
  const TempFolder folder;
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<text::Token> tokens(rng.below(5000));
    for (text::Token& id : tokens) id = static_cast<text::Token>(rng.below(65536));
    write_shard(folder / "a.bin", tokens);
    const std::vector<std::uint16_t> found = tokens_of(Shard(folder / "a.bin"));
    ASSERT_TRUE(std::equal(tokens.begin(), tokens.end(), found.begin(), found.end()));
  }
}

TEST(Shard, NamesTheFieldWhatItExpectedAndWhatItGot) {
  const TempFolder folder;
  const std::string good = shard_bytes({1, 2, 3});
  const auto error = [&](const std::string& bytes) {
    const auto path = folder.write("bad.bin", bytes);
    return error_of([&] { Shard{path}; });
  };
  const auto says = [](const auto&... parts) {
    return AllOf(HasSubstr("bad.bin"), HasSubstr(parts)...);
  };
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(error(""), says("file size", "1024", "got 0"));
  EXPECT_THAT(error(good.substr(0, 1023)), says("file size", "1024", "got 1023"));
  EXPECT_THAT(error(with_field(good, 0, 7)), says("magic", "expected 20240520, got 7"));
  EXPECT_THAT(error(with_field(good, 0, 20240801)), says("Llama 3"));
  EXPECT_THAT(error(with_field(good, 1, 2)), says("version", "expected 1, got 2"));
  EXPECT_THAT(error(with_field(good, 2, -1)), says("token count", "0 or more, got -1"));
  EXPECT_THAT(error(with_field(good, 2, 2)), says("file size", "expected 1028", "got 1030"));
  EXPECT_THAT(error(with_field(good, 2, 2147483647)), says("file size", "got 1030"));
  EXPECT_THAT(error(with_field(good, 255, 9)), says("int32 255", "expected 0, got 9"));
  EXPECT_THAT(error(good.substr(0, 1029)), says("file size", "expected 1030", "got 1029"));
  EXPECT_THAT(error(good + "x"), says("file size", "expected 1030", "got 1031"));
  EXPECT_THAT(error_of([&] { Shard{folder / "none.bin"}; }), HasSubstr("none.bin"));
  EXPECT_THAT(error_of([&] { Shard{folder.path()}; }), HasSubstr("regular file"));
}

/// A file in memory: rewriting a file on disk ten thousand times takes a minute.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("shard", 0)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path write(const std::string& bytes) const {
    EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(bytes.size())), 0);
    EXPECT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return cat("/proc/self/fd/", fd_);
  }

 private:
  int fd_;
};

TEST(Shard, SurvivesTenThousandCorruptions) {
  const MemoryFile file;
  const std::string good = shard_bytes({1, 2, 3, 4, 5, 6, 7, 8});
  Rng rng(4);
  int refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes = good;
    const std::uint64_t changes = 1 + rng.below(3);
    for (std::uint64_t i = 0; i < changes; ++i) {
      // Half of them in the first 16 bytes, where the meaning is.
      const std::size_t at = rng.below(rng.below(2) == 0 ? 16 : bytes.size());
      bytes[at] = static_cast<char>(rng.below(256));
    }
    if (rng.below(4) == 0) bytes.resize(rng.below(bytes.size() + 64), 'x');
    const auto path = file.write(bytes);
    try {
      ASSERT_EQ(shard_bytes(tokens_of(Shard(path))), bytes) << "round " << round;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5'000);
  EXPECT_LT(refused, 10'000);  // changes of tokens alone are good shards
}

TEST(TokenStream, ReadsAcrossShardsAsIfTheyWereOne) {
  const TempFolder folder;
  std::vector<std::filesystem::path> paths;
  std::uint16_t next = 0;
  for (const std::size_t size : {3, 0, 1, 5, 0}) {
    std::vector<std::uint16_t> tokens(size);
    std::iota(tokens.begin(), tokens.end(), next);
    next = static_cast<std::uint16_t>(next + size);
    paths.push_back(folder.write(cat(paths.size()), shard_bytes(tokens)));
  }
  const TokenStream stream(paths);
  ASSERT_EQ(stream.size(), 9);
  for (std::int64_t begin = 0; begin <= 9; ++begin) {
    for (std::int64_t count = 0; begin + count <= 9; ++count) {
      std::vector<std::int64_t> expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), begin);
      EXPECT_EQ(read(stream, begin, expected.size()), expected) << begin << " + " << count;
    }
  }
}

TEST(TokenStream, RefusesToReadOutsideItself) {
  const TempFolder folder;
  const TokenStream stream({folder.write("a", shard_bytes({1, 2}))});
  EXPECT_THAT(error_of([&] { read(stream, 1, 2); }), HasSubstr("[0, 2), got [1, 3)"));
  EXPECT_NE(error_of([&] { read(stream, -1, 1); }), "");
  EXPECT_NE(error_of([&] { read(stream, 3, 0); }), "");
}

TEST(Shard, ReadsNanoGptsTokensWithoutAHeader) {
  const TempFolder folder;
  const auto path = folder.write("train.bin", std::string_view("\x01\x00\xFF\xFF\x02\x01", 6));
  EXPECT_THAT(tokens_of(Shard(path, ShardFormat::kNanoGpt)), ElementsAre(1, 65535, 258));
  EXPECT_EQ(Shard(folder.write("empty.bin", ""), ShardFormat::kNanoGpt).size(), 0);
  EXPECT_THAT(error_of([&] { Shard(folder.write("odd.bin", "abc"), ShardFormat::kNanoGpt); }),
              AllOf(HasSubstr("odd.bin"), HasSubstr("even number of bytes"), HasSubstr("got 3")));
}

TEST(Shard, OfLlmCIsToldByItsFirstBytes) {
  const TempFolder folder;
  EXPECT_TRUE(is_llm_c_shard(folder.write("a", shard_bytes({}))));
  EXPECT_FALSE(is_llm_c_shard(folder.write("b", shard_bytes({}).substr(4))));
  EXPECT_FALSE(is_llm_c_shard(folder.write("c", "")));
}

TEST(TokenStream, NamesFileAndByteOfAnIdBeyondTheVocabulary) {
  const TempFolder folder;
  const std::vector<std::filesystem::path> paths = {folder.write("a.bin", shard_bytes({1, 2})),
                                                    folder.write("b.bin", shard_bytes({3, 300}))};
  const TokenStream stream(paths, ShardFormat::kLlmC, 257);
  EXPECT_THAT(read(stream, 0, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(error_of([&] { read(stream, 1, 3); }),
              AllOf(HasSubstr("b.bin: byte 1026"), HasSubstr("below 257"), HasSubstr("got 300"),
                    HasSubstr("data.tokenizer")));
  EXPECT_EQ(error_of([&] { read(TokenStream(paths, ShardFormat::kLlmC, 301), 0, 4); }), "");
}

TEST(TokenStream, SaysThatAFileWasCutShortSinceItWasOpened) {
  const TempFolder folder;
  const auto path = folder.write("a.bin", shard_bytes({1, 2, 3}));
  const TokenStream stream({path});
  resize_file(path, 1028);
  for (const int count : {2, 3})  // what is still there is no more what it was
    EXPECT_THAT(error_of([&] { read(stream, 0, count); }),
                AllOf(HasSubstr("a.bin"), HasSubstr("cut short")));
}

TEST(TokenStream, OpensMoreShardsThanASystemsFirstLimitOfFiles) {
  const TempFolder folder;
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1000) GTEST_SKIP() << "the system allows " << before.rlim_max << " files";
  const struct rlimit few {
    100, before.rlim_max
  };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto path = folder.write("a.bin", shard_bytes({1, 2, 3}));
  EXPECT_EQ(TokenStream(std::vector(300, path)).size(), 900);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(TokenStream, IsEmptyWithoutShards) { EXPECT_EQ(TokenStream({}).size(), 0); }

}  // namespace
}  // namespace xsa::data
