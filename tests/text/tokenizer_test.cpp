#include "xsa/text/tokenizer.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"
#include "xsa/base/rng.h"

namespace xsa::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;

TEST(ByteTokenizer, GivesEachByteItsValueAndEndOfTextTheNextId) {
  const auto tokenizer = make_tokenizer("byte");
  std::vector<Token> ids{7};
  tokenizer->encode("a\xC3\xA9\n", ids);
  EXPECT_THAT(ids, ElementsAre(7, 97, 0xC3, 0xA9, 10));
  EXPECT_EQ(tokenizer->end_of_text(), 256u);
  EXPECT_EQ(tokenizer->vocabulary_size(), 257);
  EXPECT_EQ(tokenizer->name(), "byte");
}

TEST(ByteTokenizer, ReturnsRandomBytesUnchanged) {
  const auto tokenizer = make_tokenizer("byte");
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    std::string text(rng.below(300), '\0');
    for (char& byte : text) byte = static_cast<char>(rng.below(256));
    std::vector<Token> ids;
    tokenizer->encode(text, ids);
    ASSERT_EQ(ids.size(), text.size());
    for (const Token id : ids) ASSERT_LT(id, 256u);
    ASSERT_EQ(tokenizer->decode(ids), text) << "round " << round;
  }
}

TEST(ByteTokenizer, DecodesEndOfTextToNothing) {
  EXPECT_EQ(make_tokenizer("byte")->decode({256, 104, 256, 105, 256}), "hi");
}

TEST(ByteTokenizer, RefusesAnIdBeyondItsVocabulary) {
  const auto tokenizer = make_tokenizer("byte");
  EXPECT_THAT(error_of([&] { tokenizer->decode({97, 257}); }),
              HasSubstr("expected ids from 0 to 256, got 257"));
}

TEST(MakeTokenizer, MakesEveryNameItLists) {
  for (const std::string& name : tokenizer_names()) EXPECT_EQ(make_tokenizer(name)->name(), name);
}

TEST(MakeTokenizer, SuggestsTheNearestNameForAnUnknownOne) {
  EXPECT_THAT(error_of<UsageError>([] { make_tokenizer("bytes"); }),
              HasSubstr("got 'bytes' (did you mean 'byte'?)"));
}

}  // namespace
}  // namespace xsa::text
