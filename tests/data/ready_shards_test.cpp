#include "xsa/data/ready_shards.h"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

constexpr text::Token kEnd = 256;  // of the byte tokenizer

std::vector<text::Token> tokens_of(std::string_view text) {
  std::vector<text::Token> tokens;
  for (const char letter : text)
    tokens.push_back(letter == '|' ? kEnd : static_cast<text::Token>(letter));
  return tokens;
}

std::string raw_bytes(const std::vector<text::Token>& tokens) {
  std::string bytes;
  for (const text::Token id : tokens) {
    bytes += static_cast<char>(id & 255);
    bytes += static_cast<char>(id >> 8);
  }
  return bytes;
}

std::string text_of(const Split& split) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(split.tokens.size()));
  split.tokens.read(0, ids);
  std::string text;
  for (const std::int64_t id : ids) text += id == kEnd ? '|' : static_cast<char>(id);
  return text;
}

class ReadyShardsTest : public ::testing::Test {
 protected:
  DataConfig config(const std::string& name) const {
    DataConfig config;
    config.source = (folder_ / name).string();
    config.cache = (folder_ / "cache").string();
    return config;
  }
  Dataset open(const std::string& name) const { return open_dataset(config(name)); }
  std::string refusal(const std::string& name) const {
    return error_of<UsageError>([&] { open(name); });
  }
  void shard(const std::string& name, std::string_view text) const {
    create_directories((folder_ / name).parent_path());
    write_shard(folder_ / name, tokens_of(text));
  }
  void expect_abc(const Dataset& dataset) const {
    EXPECT_EQ(text_of(dataset.train), "|ab|cde");
    EXPECT_EQ(text_of(dataset.validation), "|fg|h");
    EXPECT_EQ(dataset.validation.bytes, 3);
    EXPECT_EQ(dataset.tokenizer->name(), "byte");
    EXPECT_FALSE(exists(folder_ / "cache")) << "nothing is made";
  }

  TempFolder folder_;
};

TEST_F(ReadyShardsTest, OpensAFolderThatWasPrepared) {
  folder_.write("text/a.txt", "first");
  folder_.write("text/b.txt", "other");
  const Dataset made = open("text");
  const auto cache = std::filesystem::directory_iterator(folder_ / "cache");
  for (const auto& entry : cache)
    if (entry.is_directory()) rename(entry.path(), folder_ / "prepared");
  remove_all(folder_ / "cache");
  const Dataset opened = open("prepared");
  EXPECT_EQ(text_of(opened.train), text_of(made.train));
  EXPECT_EQ(text_of(opened.validation), text_of(made.validation));
  EXPECT_EQ(opened.validation.bytes, 5);
  EXPECT_EQ(opened.sha256(), made.sha256());
  EXPECT_FALSE(exists(folder_ / "cache"));
}

TEST_F(ReadyShardsTest, RefusesAPreparedFolderOfAnotherTokenizerOrThatIsDamaged) {
  folder_.write("text/a.txt", "some text, and more of it");
  DataConfig inside = config("text");
  open_dataset(inside);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache"))
    if (entry.is_directory()) rename(entry.path(), folder_ / "prepared");
  const auto manifest = folder_ / "prepared" / "manifest.json";
  const std::string good = read_file(manifest);
  std::string other = good;
  other.replace(other.find("\"byte\""), 6, "\"gpt2\"");
  atomic_write(manifest, other);
  EXPECT_THAT(refusal("prepared"), AllOf(HasSubstr("prepared with the tokenizer 'gpt2'"),
                                         HasSubstr("set data.tokenizer to 'gpt2'")));
  for (const std::string& bad : {good.substr(0, good.size() / 2), std::string("{}")}) {
    atomic_write(manifest, bad);
    EXPECT_THAT(error_of([&] { open("prepared"); }), HasSubstr("manifest.json")) << bad;
  }
  atomic_write(manifest, good);
  std::string wrong = read_file(folder_ / "prepared" / "train-00000.bin");
  wrong[0] ^= 1;
  atomic_write(folder_ / "prepared" / "train-00000.bin", wrong);
  EXPECT_THAT(error_of([&] { open("prepared"); }), HasSubstr("magic"));
  write_shard(folder_ / "prepared" / "train-00000.bin", tokens_of("|x"));
  EXPECT_THAT(error_of([&] { open("prepared"); }), HasSubstr("as its manifest says, got 2"));
}

TEST_F(ReadyShardsTest, OpensAFolderThatWasPreparedForNanoGpt) {
  folder_.write("prepared/train.bin", raw_bytes(tokens_of("|ab|cde")));
  folder_.write("prepared/val.bin", raw_bytes(tokens_of("|fg|h")));
  const auto entry = [](const char* file, int tokens, int bytes) {
    return Json{{"bytes", bytes}, {"tokens", tokens}, {"shards", {{{"file", file}}}}};
  };
  write_json_file(folder_ / "prepared" / "manifest.json", {{"format", "nanogpt"},
                                                           {"tokenizer", "byte"},
                                                           {"train", entry("train.bin", 7, 5)},
                                                           {"validation", entry("val.bin", 5, 3)}});
  expect_abc(open("prepared"));
}

TEST_F(ReadyShardsTest, SaysHowToMakeAPreparedFolderWhole) {
  const auto manifest = [&](const char* shard, int tokens) {
    const auto entry = [&](const Json& shards, int count) {
      return Json{{"bytes", 2}, {"tokens", count}, {"shards", shards}};
    };
    const Json one = Json::array({{{"file", "train-00000.bin"}}});
    const Json other = shard[0] ? Json::array({{{"file", shard}}}) : Json::array();
    write_json_file(folder_ / "made" / "manifest.json", {{"tokenizer", "byte"},
                                                         {"settings", Json::object()},
                                                         {"train", entry(one, 3)},
                                                         {"validation", entry(other, tokens)}});
  };
  shard("made/train-00000.bin", "|ab");
  shard("made/validation-00000.bin", "|cd");
  manifest("validation-00000.bin", 3);
  EXPECT_EQ(text_of(open("made").validation), "|cd");
  const auto again = AllOf(HasSubstr("xsa prepare"), HasSubstr("--overwrite"));
  manifest("validation-00000.bin", 4);
  EXPECT_THAT(error_of([&] { open("made"); }), AllOf(HasSubstr("expected 4 tokens"), again));
  manifest("validation-00001.bin", 3);
  EXPECT_THAT(error_of([&] { open("made"); }), AllOf(HasSubstr("validation-00001.bin"), again));
  manifest("", 0);
  EXPECT_THAT(refusal("made"), AllOf(HasSubstr("--validation-fraction"), again));
}

TEST_F(ReadyShardsTest, RefusesAFolderThatIsStillBeingPrepared) {
  shard("half/train-00000.bin", "|ab");
  shard("half/validation-00000.bin", "|ab");
  folder_.write("half/journal.json", "{}");
  EXPECT_THAT(refusal("half"), HasSubstr("has not finished this folder"));
}

TEST_F(ReadyShardsTest, TakesATextNamedLikeAManifestForAText) {
  folder_.write("text/manifest.json", "{\"a\": 1}");
  folder_.write("text/b.txt", "text");
  EXPECT_EQ(open("text").manifest["sources"].size(), 2u);
}

TEST_F(ReadyShardsTest, OpensNanoGptsTwoFiles) {
  folder_.write("nano/train.bin", raw_bytes(tokens_of("|ab|cde")));
  EXPECT_THAT(refusal("nano"), HasSubstr("got no val.bin"));
  folder_.write("nano/val.bin", raw_bytes(tokens_of("|fg|h")));
  folder_.write("nano/prepare.py", "a script");
  expect_abc(open("nano"));
}

TEST_F(ReadyShardsTest, RefusesNanoGptsDataOfCharacters) {
  for (const char* name : {"nano/train.bin", "nano/val.bin", "nano/meta.pkl"})
    folder_.write(name, "abcd");
  EXPECT_THAT(refusal("nano"), AllOf(HasSubstr("meta.pkl"), HasSubstr("alphabet")));
}

TEST_F(ReadyShardsTest, NamesFileAndByteOfAnIdBeyondTheTokenizersVocabulary) {
  folder_.write("nano/train.bin", raw_bytes({1, 2, 3}));
  folder_.write("nano/val.bin", raw_bytes({1, 2, 50256}));
  EXPECT_THAT(error_of([&] { open("nano"); }),
              AllOf(HasSubstr("val.bin: byte 4"), HasSubstr("below 257"), HasSubstr("got 50256"),
                    HasSubstr("data.tokenizer")));
  folder_.write("nano/val.bin", raw_bytes({1, 2, 3}));
  folder_.write("nano/train.bin", raw_bytes({1, 300, 3}));
  const Dataset dataset = open("nano");  // training tokens are checked as they are read
  EXPECT_THAT(error_of([&] { text_of(dataset.train); }),
              AllOf(HasSubstr("train.bin: byte 2"), HasSubstr("got 300")));
}

TEST_F(ReadyShardsTest, OpensLlmCsShardsByFolderOrPattern) {
  shard("fine/fineweb_train_000002.bin", "cde");
  shard("fine/fineweb_train_000001.bin", "|ab|");
  shard("fine/fineweb_val_000000.bin", "|fg|h");
  expect_abc(open("fine"));
  expect_abc(open("fine/fineweb_*_*.bin"));
  expect_abc(open("fine/*_[tv]*.bin"));
  expect_abc(open("fine/fineweb_{train,val}_00000{0,1,2}.bin"));
}

TEST_F(ReadyShardsTest, ToldWhichShardsAreWhich) {
  shard("fine/a_train_0.bin", "|ab");
  EXPECT_THAT(refusal("fine"), AllOf(HasSubstr("both sides"), HasSubstr("'val'")));
  shard("fine/a_val_0.bin", "|ab");
  EXPECT_EQ(refusal("fine"), "");
  shard("fine/interval_0.bin", "|ab");
  EXPECT_THAT(refusal("fine"), AllOf(HasSubstr("interval_0.bin"), HasSubstr("'train' or 'val'")));
  EXPECT_EQ(refusal("fine/a_*"), "");
  EXPECT_THAT(refusal("fine/b_*"), HasSubstr("no file has such a name"));
  folder_.write("fine/a_train_1.bin", "no shard");
  EXPECT_THAT(refusal("fine/a_*"), AllOf(HasSubstr("a_train_1.bin is none")));
}

TEST_F(ReadyShardsTest, DropsNoBadShardOfAFolderInSilence) {
  shard("fine/a_train_0.bin", "|ab");
  shard("fine/a_val_0.bin", "|ab");
  const std::string good = read_file(folder_ / "fine/a_train_0.bin");
  const auto with = [&](std::size_t field, std::int32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + 4 * field, &value, sizeof value);
    return bytes;
  };
  const std::pair<std::string, const char*> bad[] = {
      {"", "an empty file"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 9\n", "git lfs pull"},
      {with(0, 7), "magic (int32 0) 7"},
      {with(0, 20240801), "Llama 3"},
      {with(1, 2), "version (int32 1) 2"},
      {good.substr(0, 100), "file size"}};
  for (const auto& [bytes, reason] : bad)
    for (const char* name : {"fine/a_train_1.bin", "fine/b_val_1.bin"}) {
      folder_.write(name, bytes);
      for (const char* source : {"fine", "fine/*.bin"})
        EXPECT_THAT(error_of([&] { open(source); }),
                    AllOf(HasSubstr(std::string(name).substr(5)), HasSubstr(reason)))
            << source;
      remove(folder_ / name);
    }
  create_symlink(folder_ / "gone", folder_ / "fine/a_train_1.bin");
  EXPECT_THAT(refusal("fine"), AllOf(HasSubstr("a_train_1.bin"), HasSubstr("a link to one")));
}

TEST_F(ReadyShardsTest, TakesAFolderOfNothingButPointersForNoText) {
  for (const char* name : {"fine/a_train_0.bin", "fine/a_val_0.bin"})
    folder_.write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n");
  EXPECT_THAT(refusal("fine"), HasSubstr("git lfs pull"));
  folder_.write("nano/train.bin", read_file(folder_ / "fine/a_val_0.bin"));
  folder_.write("nano/val.bin", "abcd");
  EXPECT_THAT(error_of([&] { open("nano"); }), AllOf(HasSubstr("train.bin"), HasSubstr("git lfs")));
}

TEST_F(ReadyShardsTest, SaysWhatLiesBesideTheShardsAndIsNotRead) {
  shard("fine/a_train_0.bin", "|ab");
  shard("fine/a_val_0.bin", "|ab");
  for (const char* name : {"fine/README.md", "fine/.gitattributes", "fine/a_train_1.bin.part"})
    folder_.write(name, "x");
  ::testing::internal::CaptureStderr();
  open("fine");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("not read: README.md, a_train_1.bin.part"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("gitattributes"))) << "hidden files are no data";
}

TEST_F(ReadyShardsTest, RefusesTokenFilesThatAManifestDoesNotName) {
  folder_.write("text/a.txt", "first");
  folder_.write("text/b.txt", "other");
  open("text");
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache"))
    if (entry.is_directory()) rename(entry.path(), folder_ / "prepared");
  shard("prepared/train-00001.bin", "|more");
  EXPECT_THAT(error_of([&] { open("prepared"); }), HasSubstr("train-00001.bin"));
}

TEST_F(ReadyShardsTest, TellsChangedTokensApart) {
  shard("fine/a_train_0.bin", "|ab");
  shard("fine/a_val_0.bin", "|cd");
  const std::string first = open("fine").sha256();
  EXPECT_EQ(open("fine").sha256(), first);
  shard("fine/a_train_0.bin", "|ax");
  EXPECT_NE(open("fine").sha256(), first);
}

TEST_F(ReadyShardsTest, RefusesHeldOutTokensWithoutText) {
  shard("fine/a_train_0.bin", "|ab");
  shard("fine/a_val_0.bin", "|||");
  EXPECT_THAT(error_of([&] { open("fine"); }), AllOf(HasSubstr("a_val_0"), HasSubstr("3 tokens")));
}

TEST_F(ReadyShardsTest, SaysWhatOpensADocumentWhereTheyArePacked) {
  shard("fine/a_train_0.bin", "|ab");
  shard("fine/a_val_0.bin", "|ab");
  DataConfig packed = config("fine");
  EXPECT_EQ(open_dataset(packed).train.document_opener, std::nullopt);
  packed.documents = "packed";
  const Dataset dataset = open_dataset(packed);
  EXPECT_EQ(dataset.train.document_opener, kEnd);
  EXPECT_EQ(dataset.validation.document_opener, kEnd);
}

}  // namespace
}  // namespace xsa::data
