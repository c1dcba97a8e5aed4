// Held to Hugging Face's tokenizers by tests/golden/bpe, which bench/bpe_golden.py makes.
#include "xsa/text/bpe_tokenizer.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/json.h"
#include "xsa/base/rng.h"
#include "xsa/text/stream_encoder.h"

namespace xsa::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

const std::filesystem::path kGolden = std::filesystem::path(XSA_TESTS_FOLDER) / "golden" / "bpe";

std::vector<Json> golden_lines() {
  std::ifstream file(kGolden / "ids.jsonl");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

/// The golden vocabulary as one file, as transformers saves it.
Json tokenizer_json() {
  Json merges = Json::array(), added = Json::array();
  std::ifstream file(kGolden / "merges.txt");
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with("#version")) merges.push_back(line);
  for (const auto& [text, id] : {std::pair("<s>", 0), {"</s>", 2}, {"<mask>", 4}})
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", level},
          {"post_processor", level},
          {"decoder", level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"vocab", read_json_file(kGolden / "vocab.json")},
            {"merges", merges}}}};
}

void write(const TempFolder& folder, const Json& tokenizer) {
  folder.write("tokenizer.json", tokenizer.dump());
  folder.write("tokenizer_config.json", R"({"eos_token": {"content": "</s>"}})");
}

std::vector<Token> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<Token> ids;
  tokenizer.encode(text, ids);
  return ids;
}

TEST(BpeTokenizer, GivesTheIdsOfHuggingFacesTokenizers) {
  const TempFolder one_file;
  write(one_file, tokenizer_json());
  for (const std::filesystem::path& folder : {kGolden, one_file.path()}) {
    const auto tokenizer = make_tokenizer(folder.string());
    int texts = 0;
    for (const Json& line : golden_lines()) {
      if (!line.contains("ids")) continue;
      const auto text = line.at("text").get<std::string>();
      EXPECT_EQ(ids_of(*tokenizer, text), line.at("ids").get<std::vector<Token>>()) << text;
      EXPECT_EQ(tokenizer->decode(ids_of(*tokenizer, text)), text);
      ++texts;
    }
    EXPECT_GT(texts, 50);
    EXPECT_EQ(tokenizer->vocabulary_size(), 495);
  }
}

TEST(BpeTokenizer, KnowsItsSpecialTokensByTheFiles) {
  const auto tokenizer = make_tokenizer(kGolden.string());
  EXPECT_EQ(tokenizer->end_of_text(), 2u);
  EXPECT_EQ(tokenizer->begin_of_text(), 0u);
  std::vector<std::string> texts;
  for (const SpecialToken& token : tokenizer->special_tokens()) texts.push_back(token.text);
  EXPECT_THAT(texts, ElementsAre("<s>", "<pad>", "</s>", "<unk>", "<mask>"));
  EXPECT_EQ(tokenizer->decode({0, 2}), "<s></s>");
  EXPECT_EQ(tokenizer->decode(ids_of(*tokenizer, "<s>")), "<s>") << "in a text it is text";
  EXPECT_GT(ids_of(*tokenizer, "<s>").size(), 1u);
}

TEST(BpeTokenizer, ReturnsRandomBytesUnchangedAndStreamsToTheSameIds) {
  const auto tokenizer = make_tokenizer(kGolden.string());
  Rng rng(2);
  for (int round = 0; round < 50; ++round) {
    std::string text(rng.below(3000), '\0');
    for (char& byte : text)
      byte = static_cast<char>(round % 2 ? rng.below(256) : "the kg'n "[rng.below(9)]);
    const std::vector<Token> ids = ids_of(*tokenizer, text);
    ASSERT_EQ(tokenizer->decode(ids), text);
    std::vector<Token> streamed;
    StreamEncoder stream(*tokenizer);
    for (std::size_t begin = 0; begin < text.size(); begin += 7)
      stream.add(std::string_view(text).substr(begin, 7), streamed);
    stream.finish(streamed);
    ASSERT_EQ(streamed, ids);
  }
}

TEST(BpeTokenizer, TakesTimeInProportionToAWordsLength) {
  const auto tokenizer = make_tokenizer(kGolden.string());
  const std::string word(300'000, 'a');
  EXPECT_EQ(tokenizer->decode(ids_of(*tokenizer, word)), word);  // hours, if it were quadratic
}

TEST(BpeTokenizer, IsKnownByItsContentWhereverItLies) {
  const TempFolder here, there, other;
  write(here, tokenizer_json());
  write(there, tokenizer_json());
  Json changed = tokenizer_json();
  changed["model"]["merges"].erase(changed["model"]["merges"].size() - 1);
  changed["added_tokens"].push_back({{"content", "<new>"}, {"id", 495}});
  const auto identity = [](const TempFolder& folder) {
    return make_tokenizer(folder.path().string())->identity();
  };
  EXPECT_EQ(identity(here), identity(there));
  EXPECT_NE(make_tokenizer(here.path().string())->name(),
            make_tokenizer(there.path().string())->name());
  changed["model"]["merges"] = tokenizer_json()["model"]["merges"];
  write(other, changed);
  EXPECT_NE(identity(here), identity(other));
  EXPECT_EQ(make_tokenizer(other.path().string())->vocabulary_size(), 496);
}

TEST(BpeTokenizer, RefusesWhatIsNotGpt2sKindOfTokenizer) {
  const auto error = [](const std::function<void(Json&)>& change) {
    Json json = tokenizer_json();
    change(json);
    const TempFolder folder;
    write(folder, json);
    return error_of([&] { make_tokenizer(folder.path().string()); });
  };
  EXPECT_EQ(error([](Json&) {}), "");
  EXPECT_THAT(error([](Json& json) { json["normalizer"] = {{"type", "NFC"}}; }),
              HasSubstr("tokenizer.json: normalizer: expected none, got NFC"));
  EXPECT_THAT(error([](Json& json) { json["pre_tokenizer"] = {{"type", "Whitespace"}}; }),
              HasSubstr("pre_tokenizer: expected ByteLevel, got Whitespace"));
  EXPECT_THAT(error([](Json& json) { json["pre_tokenizer"] = nullptr; }),
              HasSubstr("pre_tokenizer: expected ByteLevel, got none"));
  EXPECT_THAT(error([](Json& json) { json["pre_tokenizer"]["add_prefix_space"] = true; }),
              HasSubstr("add_prefix_space: expected false"));
  EXPECT_THAT(error([](Json& json) { json["pre_tokenizer"]["use_regex"] = false; }),
              HasSubstr("use_regex: expected true"));
  EXPECT_THAT(error([](Json& json) { json["post_processor"] = {{"type", "TemplateProcessing"}}; }),
              HasSubstr("post_processor: expected none or ByteLevel, got TemplateProcessing"));
  EXPECT_THAT(error([](Json& json) { json["model"]["type"] = "Unigram"; }),
              HasSubstr("model: expected BPE, got Unigram"));
  EXPECT_THAT(error([](Json& json) { json["model"]["dropout"] = 0.1; }), HasSubstr("dropout"));
  EXPECT_THAT(error([](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; }),
              HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(error([](Json& json) { json["model"]["byte_fallback"] = true; }),
              HasSubstr("byte_fallback"));
  EXPECT_THAT(error([](Json& json) { json["truncation"] = {{"max_length", 8}}; }),
              HasSubstr("truncation"));
  EXPECT_THAT(error([](Json& json) { json["added_tokens"][0]["lstrip"] = true; }),
              HasSubstr("'<s>': expected lstrip to be false"));
  EXPECT_THAT(error([](Json& json) { json["added_tokens"][0]["id"] = 1; }),
              HasSubstr("'<s>' has the id 1, but 0 in the vocabulary"));
  EXPECT_THAT(error([](Json& json) { json["model"]["vocab"]["the"] = 3; }),
              HasSubstr("the id 3 is another's too"));
  EXPECT_THAT(error([](Json& json) { json["model"]["vocab"]["q"] = -1; }), HasSubstr("'q'"));
  EXPECT_THAT(error([](Json& json) { json["model"]["merges"].push_back("q q"); }),
              HasSubstr("'qq' is no token of the vocabulary"));
  EXPECT_THAT(error([](Json& json) { json["model"]["merges"].push_back("qq"); }),
              HasSubstr("expected two tokens with a space between them, got 'qq'"));
  EXPECT_THAT(error([](Json& json) { json["model"]["merges"].push_back({"q"}); }),
              HasSubstr("expected two tokens, got [\"q\"]"));
  EXPECT_THAT(error([](Json& json) { json["model"]["merges"].erase(100); }),
              HasSubstr("which no merge makes"));
  EXPECT_THAT(error([](Json& json) { json["model"] = "BPE"; }),
              HasSubstr("an object with 'model'"));
}

TEST(BpeTokenizer, RefusesAFolderThatLacksAPart) {
  const auto error = [](std::initializer_list<std::pair<const char*, std::string>> files) {
    const TempFolder folder;
    for (const auto& [name, content] : files) folder.write(name, content);
    return error_of([&] { make_tokenizer(folder.path().string()); });
  };
  const std::string ids = read_file(kGolden / "vocab.json"),
                    merges = read_file(kGolden / "merges.txt");
  EXPECT_THAT(error({}), HasSubstr("expected a tokenizer: tokenizer.json, or vocab.json and"));
  EXPECT_THAT(error({{"vocab.json", ids}}), HasSubstr("merges.txt is missing"));
  EXPECT_THAT(error({{"merges.txt", merges}}), HasSubstr("vocab.json is missing"));
  EXPECT_THAT(error({{"vocab.json", ids}, {"merges.txt", merges}}),
              HasSubstr("expected a token that ends a text, got none"));
  EXPECT_THAT(
      error({{"vocab.json", ids}, {"merges.txt", merges.substr(0, merges.rfind('\n', 900) + 1)}}),
      HasSubstr("are the merges cut, or another vocabulary's?"));
  EXPECT_THAT(error({{"vocab.json", "{"}, {"merges.txt", merges}}), HasSubstr("vocab.json: "));
  EXPECT_EQ(
      error(
          {{"vocab.json", ids}, {"merges.txt", merges}, {"config.json", R"({"eos_token_id": 2})"}}),
      "");
}

TEST(BpeTokenizer, RefusesAByteThatItsVocabularyLacks) {
  Json json = tokenizer_json();
  json["model"]["vocab"].erase("Q");
  const TempFolder folder;
  write(folder, json);
  const auto tokenizer = make_tokenizer(folder.path().string());
  EXPECT_THAT(error_of([&] { ids_of(*tokenizer, "a Queen"); }),
              HasSubstr("the text has the byte 0x51"));
  EXPECT_EQ(tokenizer->decode(ids_of(*tokenizer, "a king")), "a king");
}

}  // namespace
}  // namespace xsa::text
