#include "xsa/text/gpt2_pieces.h"

#include <gmock/gmock.h>

#include <span>
#include <string>

#include "xsa/base/hash.h"
#include "xsa/text/utf8.h"

namespace xsa::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces_of(std::string_view text) {
  static const Gpt2Pieces pieces;
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = pieces.end_of_piece(text, begin);
    found.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return found;
}

TEST(Gpt2Pieces, AWordTakesOneSpaceBeforeIt) {
  EXPECT_THAT(pieces_of("to be, or 2b?"), ElementsAre("to", " be", ",", " or", " 2", "b", "?"));
  EXPECT_THAT(pieces_of("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(pieces_of("a\tb"), ElementsAre("a", "\t", "b"));
  EXPECT_THAT(pieces_of("a \n b"), ElementsAre("a", " \n", " b"));
}

TEST(Gpt2Pieces, SpacesAtTheEndStayTogether) {
  EXPECT_THAT(pieces_of("a \n "), ElementsAre("a", " \n "));
  EXPECT_THAT(pieces_of(" "), ElementsAre(" "));
}

TEST(Gpt2Pieces, OnlySmallContractionsAreCutOff) {
  EXPECT_THAT(
      pieces_of("it's I'LL we've 'em don'ts"),
      ElementsAre("it", "'s", " I", "'", "LL", " we", "'ve", " '", "em", " don", "'t", "s"));
  EXPECT_THAT(pieces_of("''s"), ElementsAre("''", "s"));
  EXPECT_THAT(pieces_of("'r"), ElementsAre("'", "r"));
}

TEST(Gpt2Pieces, ABadByteIsASign) {
  EXPECT_THAT(pieces_of("a\xC3"
                        "b \x80\xE2\x82!"),
              ElementsAre("a", "\xC3", "b", " \x80\xE2\x82!"));
}

// The digest is tiktoken's: tools/unicode_tables.py prints it.
TEST(Gpt2Pieces, KnowsEveryCharactersKindAsTiktokenDoes) {
  std::string digits;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string it;
    append_utf8(c, it);
    const auto joins = [&](const char* other) { return pieces_of(other + it).size() == 1; };
    digits += joins("a") ? '1' : joins("1") ? '2' : joins("\n") ? '3' : '0';
  }
  EXPECT_EQ(sha256(std::as_bytes(std::span(digits))),
            "23798df8a326a74b814b31168ab4163dc004615762542ab1a5fdd7e53bc7819b");
}

}  // namespace
}  // namespace xsa::text
