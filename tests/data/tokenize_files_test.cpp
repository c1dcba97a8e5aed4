#include "xsa/data/tokenize_files.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa::data {
namespace {

using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

/// Gives one id for any text.
class OneId final : public text::Tokenizer {
 public:
  OneId(std::int64_t vocabulary, text::Token id) : vocabulary_(vocabulary), id_(id) {}
  std::string name() const override { return "one-id"; }
  std::int64_t vocabulary_size() const override { return vocabulary_; }
  text::Token end_of_text() const override { return 0; }
  void encode(std::string_view, std::vector<text::Token>& ids) const override {
    ids.push_back(id_);
  }
  std::size_t safe_prefix(std::string_view text) const override { return text.size(); }
  std::string decode(const std::vector<text::Token>&) const override { return ""; }

 private:
  std::int64_t vocabulary_;
  text::Token id_;
};

/// What it comes to, and the documents that were written.
std::pair<std::string, std::int64_t> tokenized(std::int64_t vocabulary, text::Token id) {
  const TempFolder folder;
  const auto path = folder.write("a.txt", "text");
  FileRows rows({Input{.file = inspect(path, "a.txt"), .form = {}}}, {}, {});
  SplitWriter train(folder.path(), /*validation=*/false, ShardFormat::kLlmC, 10'000);
  SplitWriter validation(folder.path(), /*validation=*/true, ShardFormat::kLlmC, 10'000);
  Progressed state;
  const std::string error =
      error_of([&] { tokenize_files(rows, OneId(vocabulary, id), train, validation, state, {}); });
  return {error, state.train.documents};
}

TEST(TokenizeFiles, RefusesAnIdBeyondTheVocabularyOrTwoBytes) {
  EXPECT_EQ(tokenized(300, 299), std::pair(std::string(), std::int64_t{1}));
  EXPECT_EQ(tokenized(65'536, 65'535), std::pair(std::string(), std::int64_t{1}));
  const auto [beyond, none] = tokenized(300, 300);
  EXPECT_THAT(beyond, HasSubstr("tokenizer 'one-id': expected ids below 300, got 300"));
  EXPECT_EQ(none, 0);
  const auto [large, nothing] = tokenized(100'000, 65'536);
  EXPECT_THAT(large, HasSubstr("expected ids below 65536, got 65536"));
  EXPECT_EQ(nothing, 0);
}

}  // namespace
}  // namespace xsa::data
