#include "xsa/text/stream_encoder.h"

#include <gmock/gmock.h>

#include "xsa/base/rng.h"

namespace xsa::text {
namespace {

const Tokenizer& gpt2() {
  static const auto tokenizer = make_tokenizer("gpt2");
  return *tokenizer;
}

TEST(StreamEncoder, GivesTheIdsOfTheWholeWhereverTheTextIsCut) {
  static const std::vector<std::string> parts{"the", " king", "'s", "'",  "  ",   "\n",    "7",
                                              "é",   "文",    "。", "😀", "\xFF", "\u3000"};
  Rng rng(11);
  StreamEncoder encoder(gpt2());
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t i = rng.below(80); i > 0; --i) text += parts[rng.below(parts.size())];
    std::vector<Token> expected, ids;
    gpt2().encode(text, expected);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + rng.below(9);
      encoder.add(std::string_view(text).substr(at, size), ids);
      at += size;
    }
    encoder.finish(ids);
    ASSERT_EQ(ids, expected) << "round " << round;
  }
}

TEST(StreamEncoder, GivesIdsAsSoonAsTheyAreSure) {
  StreamEncoder encoder(gpt2());
  std::vector<Token> ids;
  encoder.add("Hello, world! And ", ids);
  EXPECT_GE(ids.size(), 3u);
}

TEST(StreamEncoder, TakesAWordThatNeverEndsInPieces) {
  StreamEncoder encoder(gpt2());
  std::vector<Token> ids, expected;
  for (int i = 0; i < 3000; ++i) encoder.add(std::string(100, 'a'), ids);
  encoder.finish(ids);
  gpt2().encode(std::string(300'000, 'a'), expected);
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace xsa::text
