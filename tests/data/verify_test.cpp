#include "xsa/data/verify.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/base/json.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

constexpr std::int64_t kTokens = 5000;

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    std::vector<text::Token> tokens;
    for (text::Token id = 0; id < kTokens; ++id) tokens.push_back(id % 250);
    write_shard(path_, tokens);
    good_ = hash_of(path_);
  }
  static std::string hash_of(const fs::path& path) {
    const std::string bytes = read_file(path);
    return sha256(std::as_bytes(std::span(bytes)));
  }
  TokenStream open(const std::string& sha256) const {
    return TokenStream({path_}, ShardFormat::kLlmC, kAnyVocabulary, {sha256});
  }
  void verify(const TokenStream& stream) const { verify_shards({&stream}, folder_ / "cache"); }
  static std::int64_t first_token(const TokenStream& stream) {
    std::vector<std::int64_t> ids(1);
    stream.read(0, ids);
    return ids[0];
  }
  /// In place, and back to the time that it had: only the record's own time tells.
  void zero(std::int64_t from, std::int64_t bytes) const {
    const auto time = fs::last_write_time(path_);
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(from);
    file << std::string(static_cast<std::size_t>(bytes), '\0');
    file.close();
    fs::last_write_time(path_, time);
  }
  Json record(const fs::path& folder) const { return read_json_file(folder / kVerifiedName); }

  TempFolder folder_;
  fs::path path_ = folder_ / "train-00000.bin";
  std::string good_;
};

TEST_F(VerifyTest, GivesNoTokenOfAShardThatIsNotAsItsManifestSays) {
  zero(2000, 4000);
  const auto names_it = AllOf(HasSubstr(path_.string()), HasSubstr("expected SHA-256 " + good_),
                              HasSubstr("got " + hash_of(path_)), HasSubstr("--overwrite"));
  EXPECT_THAT(error_of([&] { verify(open(good_)); }), names_it);
  EXPECT_THAT(error_of([&] { first_token(open(good_)); }), names_it) << "not asked to verify";
}

TEST_F(VerifyTest, SeesAChangeBehindAVerificationThatIsRemembered) {
  verify(open(good_));
  EXPECT_EQ(error_of([&] { verify(open(good_)); }), "");
  zero(2000, 2);
  EXPECT_THAT(error_of([&] { verify(open(good_)); }), HasSubstr("expected SHA-256 " + good_));
}

TEST_F(VerifyTest, HashesOnceWhatStaysAsItIs) {
  verify(open(""));
  Json known = record(folder_.path());
  EXPECT_EQ(known["files"]["train-00000.bin"]["sha256"], good_);
  known["files"]["train-00000.bin"]["sha256"] = "told";  // who reads the file finds another
  write_json_file(folder_ / kVerifiedName, known);
  const TokenStream again = open("");
  verify(again);
  EXPECT_EQ(again.shards()[0].verify(), "told");
  EXPECT_EQ(first_token(again), 0);
}

TEST_F(VerifyTest, HashesAnewWhereTheRecordIsOfAnotherStateOrDamaged) {
  verify(open(""));
  const std::string good_record = read_file(folder_ / kVerifiedName);
  for (const char* key : {"bytes", "modified_ns", "changed_ns", "inode", "sha256", "version"}) {
    Json known = Json::parse(good_record);
    Json& entry = known["files"]["train-00000.bin"];
    entry["sha256"] = "told";
    (std::string(key) == "version" ? known : entry)[key] = 7;
    write_json_file(folder_ / kVerifiedName, known);
    const TokenStream again = open("");
    verify(again);
    EXPECT_EQ(again.shards()[0].verify(), good_) << key;
  }
  for (const std::string& damaged : {std::string(), good_record.substr(0, 80), std::string("[]")}) {
    folder_.write(kVerifiedName, damaged);
    EXPECT_EQ(error_of([&] { verify(open(good_)); }), "") << damaged;
    EXPECT_EQ(record(folder_.path())["files"]["train-00000.bin"]["sha256"], good_);
  }
}

TEST_F(VerifyTest, RemembersInTheCacheWhereTheFolderCannotBeWritten) {
  fs::create_directory(folder_ / kVerifiedName);  // no file can be there
  verify(open(good_));
  const Json known = record(folder_ / "cache");
  EXPECT_EQ(known["files"][fs::canonical(path_).string()]["sha256"], good_);
  Json told = known;
  told["files"][fs::canonical(path_).string()]["sha256"] = "told";
  write_json_file(folder_ / "cache" / kVerifiedName, told);
  const TokenStream again = open("");
  verify(again);
  EXPECT_EQ(again.shards()[0].verify(), "told");
}

TEST_F(VerifyTest, WorksWhereNothingCanBeWritten) {
  fs::create_directory(folder_ / kVerifiedName);
  folder_.write("cache", "a file");
  EXPECT_EQ(error_of([&] { verify(open(good_)); }), "");
}

TEST_F(VerifyTest, RefusesToReadOnInAShardThatChangesMeanwhile) {
  for (const std::string& known : {good_, std::string()}) {
    const TokenStream stream = open(known);
    verify(stream);
    EXPECT_EQ(first_token(stream), 0);
    const std::string whole = read_file(path_);
    zero(2000, 2);
    EXPECT_THAT(error_of([&] { first_token(stream); }),
                AllOf(HasSubstr(path_.string()), HasSubstr("expected SHA-256 " + good_)));
    std::ofstream(path_, std::ios::binary | std::ios::in | std::ios::out) << whole;
    EXPECT_EQ(first_token(stream), 0) << "brought back";
  }
}

TEST_F(VerifyTest, ReadsOnWhereAShardWasTouchedAlone) {
  const TokenStream stream = open(good_);
  verify(stream);
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::hours(1));
  EXPECT_EQ(first_token(stream), 0);
  fs::create_hard_link(path_, folder_ / "link");
  EXPECT_EQ(first_token(stream), 0);
}

TEST_F(VerifyTest, RefusesAShardThatIsCutShortMeanwhile) {
  const TokenStream stream = open(good_);
  verify(stream);
  fs::resize_file(path_, 3000);
  EXPECT_THAT(error_of([&] { first_token(stream); }), HasSubstr(path_.string()));
}

TEST_F(VerifyTest, RemembersTheGoodShardsBesideABadOne) {
  const fs::path other = folder_ / "train-00001.bin";
  fs::copy_file(path_, other);
  zero(2000, 2);
  const TokenStream both({other, path_}, ShardFormat::kLlmC, kAnyVocabulary, {good_, good_});
  EXPECT_THAT(error_of([&] { verify(both); }), HasSubstr("train-00000.bin"));
  EXPECT_THAT(error_of([&] { verify(both); }), HasSubstr("train-00000.bin"));
  EXPECT_FALSE(record(folder_.path())["files"].contains("train-00000.bin"));
}

}  // namespace
}  // namespace xsa::data
