// Ids are tiktoken 0.14's (gpt2, encode_ordinary); tests/e2e/test_tokenize.py asks tiktoken itself.
#include "xsa/text/gpt2_tokenizer.h"

#include <gmock/gmock.h>

#include <numeric>
#include <span>
#include <thread>

#include "tests/support/temp_folder.h"
#include "xsa/base/hash.h"
#include "xsa/base/rng.h"

namespace xsa::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;

const Gpt2Tokenizer& gpt2() {
  static const Gpt2Tokenizer tokenizer(gpt2_vocabulary_folder());
  return tokenizer;
}

std::vector<Token> ids_of(std::string_view text) {
  std::vector<Token> ids;
  gpt2().encode(text, ids);
  return ids;
}

std::string hash_of(const std::vector<Token>& ids) { return sha256(std::as_bytes(std::span(ids))); }

/// Words, spaces, apostrophes, characters of all sizes, and bytes that are none.
std::string made_text(Rng& rng, std::size_t size) {
  static const std::vector<std::string> parts{
      "the",  " king", "'s", "'ll",    "'",      "''",  " ",      "  ",       "\n",
      "\n\n", "\t",    "7",  "1066",   "!",      "...", "é",      "Σ",        "中",
      "文",   "。",    "😀", "\u3000", "\u00a0", "٣",   "\u0301", "\xE2\x82", "\xFF"};
  std::string text;
  while (text.size() < size) text += parts[rng.below(parts.size())];
  return text;
}

TEST(Gpt2Tokenizer, GivesTiktokensIds) {
  EXPECT_THAT(ids_of(""), ElementsAre());
  EXPECT_THAT(ids_of("Hello, world!"), ElementsAre(15496, 11, 995, 0));
  EXPECT_THAT(ids_of("it's we'll I'VE they're"),
              ElementsAre(270, 338, 356, 1183, 314, 6, 6089, 484, 821));
  EXPECT_THAT(ids_of("don''t 'tis"), ElementsAre(9099, 7061, 83, 705, 48010));
  EXPECT_THAT(ids_of("naïve “quotes” café"),
              ElementsAre(2616, 38776, 564, 250, 421, 6421, 447, 251, 40304));
  EXPECT_THAT(ids_of("中文和日本語"),
              ElementsAre(40792, 23877, 229, 161, 240, 234, 33768, 98, 17312, 105, 45739, 252));
  EXPECT_THAT(ids_of("x²½Ⅷ 3٣"), ElementsAre(87, 31185, 23141, 158, 227, 100, 513, 149, 96));
  EXPECT_THAT(ids_of(std::string_view("\0\1", 2)), ElementsAre(188, 189));
}

TEST(Gpt2Tokenizer, CutsSpacesAsTheirNeighboursAsk) {
  EXPECT_THAT(ids_of("  two  spaces"), ElementsAre(220, 734, 220, 9029));
  EXPECT_THAT(ids_of("a\n\n\nb"), ElementsAre(64, 628, 198, 65));
  EXPECT_THAT(ids_of("tail  \n"), ElementsAre(13199, 220, 220, 198));
  EXPECT_THAT(ids_of("\u00a0x\u3000y"), ElementsAre(1849, 87, 5099, 222, 88));
}

TEST(Gpt2Tokenizer, TakesEndOfTextInATextForText) {
  EXPECT_THAT(ids_of("<|endoftext|>"), ElementsAre(27, 91, 437, 1659, 5239, 91, 29));
  EXPECT_EQ(gpt2().end_of_text(), 50256u);
  EXPECT_EQ(gpt2().vocabulary_size(), 50257);
}

TEST(Gpt2Tokenizer, EncodesLongWordsAsTiktokenDoes) {
  const std::vector<Token> letters = ids_of(std::string(1'000'003, 'a'));
  EXPECT_EQ(letters.size(), 250'001u);
  EXPECT_EQ(hash_of(letters), "42564cb5f22981b574cf0d2d51adae44cbdcfb3a11b204b676adc5dc853de82b");
  EXPECT_THAT(ids_of(std::string(20, '0')), ElementsAre(25645, 2388));
}

TEST(Gpt2Tokenizer, KeepsEveryByteOfAnything) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    std::string text(rng.below(400), '\0');
    for (char& byte : text) byte = static_cast<char>(rng.below(256));
    ASSERT_EQ(gpt2().decode(ids_of(text)), text) << "round " << round;
    const std::string other = made_text(rng, 200);
    ASSERT_EQ(gpt2().decode(ids_of(other)), other) << "round " << round;
  }
}

TEST(Gpt2Tokenizer, CutsAroundABadByteAsAroundTheReplacementCharacter) {
  EXPECT_THAT(ids_of("ab\xFF"
                     "cd ef"),
              ElementsAre(397, 187, 10210, 304, 69))
      << "'ab', the byte, 'cd', ' ef'";
  EXPECT_THAT(ids_of("ab cd"), ElementsAre(397, 22927));
}

TEST(Gpt2Tokenizer, DecodesAnyIds) {
  std::vector<Token> all(50257);
  std::iota(all.begin(), all.end(), 0);
  std::string text;
  for (const Token id : all) text += gpt2().decode({id});
  EXPECT_EQ(gpt2().decode(all), text);
  EXPECT_TRUE(text.ends_with("<|endoftext|>"));
  EXPECT_EQ(gpt2().decode({447, 251}), "”") << "a character in two ids";
  EXPECT_EQ(gpt2().decode({447}), "\xE2\x80");
  EXPECT_EQ(gpt2().decode({}), "");
}

TEST(Gpt2Tokenizer, RefusesAnIdBeyondItsVocabulary) {
  EXPECT_THAT(error_of([] { gpt2().decode({0, 50257}); }),
              HasSubstr("expected ids from 0 to 50256, got 50257"));
}

TEST(SafePrefix, PartsHaveTheIdsOfTheWhole) {
  Rng rng(6);
  int cut = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = made_text(rng, 40);
    const std::size_t known = 1 + rng.below(text.size());
    const std::size_t size = gpt2().safe_prefix(std::string_view(text).substr(0, known));
    ASSERT_LE(size, known);
    std::vector<Token> parts = ids_of(text.substr(0, size));
    gpt2().encode(std::string_view(text).substr(size), parts);
    ASSERT_EQ(parts, ids_of(text)) << "round " << round << ": cut at " << size << " of " << known;
    cut += size > 0;
  }
  EXPECT_GT(cut, 2000);
}

TEST(SafePrefix, CutsBeforeASpaceAndBetweenLettersAndSigns) {
  EXPECT_EQ(gpt2().safe_prefix("one two three fo"), 7u);
  EXPECT_EQ(gpt2().safe_prefix("中文，日本"), 9u) << "the last character may be incomplete";
  EXPECT_EQ(gpt2().safe_prefix("I don't"), 1u) << "never after an apostrophe";
  EXPECT_EQ(gpt2().safe_prefix("aaaaaaaaaaaaa"), 0u);
  EXPECT_EQ(gpt2().safe_prefix(std::string(100, ' ')), 0u) << "what follows decides";
  EXPECT_EQ(gpt2().safe_prefix(""), 0u);
}

TEST(EncodeInParallel, GivesTheSameIdsWhateverTheWorkers) {
  Rng rng(7);
  std::string text = made_text(rng, 900'000);
  text += std::string(700'000, 'x') + made_text(rng, 100'000);  // one word longer than a part
  const std::vector<Token> expected = ids_of(text);
  for (const std::int64_t workers : {1, 2, 5}) {
    std::vector<Token> ids{7};
    encode(gpt2(), text, ids, threads(workers));
    ASSERT_EQ(ids.size(), expected.size() + 1);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), ids.begin() + 1)) << workers;
    EXPECT_EQ(ids.front(), 7u) << "ids are appended";
  }
}

TEST(EncodeInParallel, OneTokenizerServesSeveralThreadsAtOnce) {
  Rng rng(8);
  const std::string text = made_text(rng, 20'000);
  const std::vector<Token> expected = ids_of(text);
  std::vector<std::vector<Token>> results(4);
  {
    std::vector<std::jthread> team;
    for (auto& result : results)
      team.emplace_back([&] {
        for (int i = 0; i < 5; ++i) {
          result.clear();
          gpt2().encode(text, result);
        }
      });
  }
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace xsa::text
