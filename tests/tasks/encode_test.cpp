#include "xsa/tasks/encode.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr text::Token kEnd = 256;  // of the byte tokenizer

Request encoded(const std::string& context, const std::string& continuation) {
  Request request;
  request.context = context;
  request.continuation = continuation;
  encode_request(*text::make_tokenizer("byte"), request);
  return request;
}

TEST(EncodeRequest, MovesSpaceThatEndsTheContext) {
  const Request request = encoded("a \n", " b");
  EXPECT_THAT(request.context_ids, ElementsAre('a'));
  EXPECT_THAT(request.continuation_ids, ElementsAre(' ', '\n', ' ', 'b'));
  EXPECT_EQ(request.context, "a \n");  // the texts stay as they are
  EXPECT_EQ(request.continuation, " b");
}

TEST(EncodeRequest, MovesPythonsSpacesOfAnyWidth) {
  const Request request = encoded("a\u2003", " b");
  EXPECT_THAT(request.context_ids, ElementsAre('a'));
  EXPECT_EQ(request.continuation_ids.size(), 5u);
}

TEST(EncodeRequest, PutsEndOfTextWhereThereIsNoContext) {
  EXPECT_THAT(encoded("", " b").context_ids, ElementsAre(kEnd));
  const Request own = encoded("", "<|endoftext|>b");
  EXPECT_THAT(own.context_ids, ElementsAre(kEnd));
  EXPECT_THAT(own.continuation_ids, ElementsAre('b'));
}

TEST(EncodeRequest, ReadsEndOfTextInATextAsThatToken) {
  EXPECT_THAT(encoded("a<|endoftext|><|endoftext|>c", "b").context_ids,
              ElementsAre('a', kEnd, kEnd, 'c'));
}

/// Bytes, with special tokens of which one begins another.
class Special final : public text::Tokenizer {
 public:
  std::string name() const override { return "special"; }
  std::int64_t vocabulary_size() const override { return 260; }
  text::Token end_of_text() const override { return 256; }
  text::Token begin_of_text() const override { return 257; }
  std::vector<text::SpecialToken> special_tokens() const override {
    return {{"</s>", 256}, {"<s>", 257}, {"<s", 258}, {"<s>>", 259}};
  }
  void encode(std::string_view text, std::vector<text::Token>& ids) const override {
    for (const char each : text) ids.push_back(static_cast<unsigned char>(each));
  }
  std::size_t safe_prefix(std::string_view text) const override { return text.size(); }
  std::string decode(const std::vector<text::Token>&) const override { return ""; }
};

TEST(EncodeText, ReadsAVocabularysSpecialTokensTheLongestFirst) {
  EXPECT_THAT(encode_text(Special(), "a<s>b<s>></s><sc<"),
              ElementsAre('a', 257, 'b', 259, 256, 258, 'c', '<'));
}

TEST(EncodeRequest, PutsAVocabularysBeginningWhereThereIsNoContext) {
  Request request;
  request.continuation = " b";
  encode_request(Special(), request);
  EXPECT_THAT(request.context_ids, ElementsAre(257));
  request.continuation = "<s>b";
  encode_request(Special(), request);
  EXPECT_THAT(request.context_ids, ElementsAre(257));
  EXPECT_THAT(request.continuation_ids, ElementsAre('b'));
}

TEST(EncodeRequest, RefusesWhatLeavesNothingToSee) {
  EXPECT_THAT(xsa::testing::error_of([] { encoded(" \u00a0\n", " b"); }), HasSubstr("white space"));
  EXPECT_THAT(xsa::testing::error_of([] { encoded("a", ""); }), HasSubstr("one token"));
  EXPECT_THAT(xsa::testing::error_of([] { encoded("", "<|endoftext|>"); }), HasSubstr("one token"));
}

}  // namespace
}  // namespace xsa::tasks
