#include "xsa/tasks/hellaswag.h"

#include <gtest/gtest.h>

namespace xsa::tasks {
namespace {

TEST(CleanHellaswag, TurnsTitlesIntoFullStops) {
  EXPECT_EQ(clean_hellaswag("[header] How to water a fern [title] Fill a can. [step] Use it."),
            " How to water a fern. Fill a can. Use it.");
}

TEST(CleanHellaswag, KeepsTheSpaceAfterABracketThatBeganTheText) {
  EXPECT_EQ(clean_hellaswag("[title] jump. [step] They swim."), " jump. They swim.");
}

TEST(CleanHellaswag, HalvesSpacesInOnePass) {
  EXPECT_EQ(clean_hellaswag("a  b   c    d"), "a b  c  d");
}

TEST(CleanHellaswag, TakesTheShortestBracketsOfALine) {
  EXPECT_EQ(clean_hellaswag("a [b] c] [d [e] f"), "a c] f");
  EXPECT_EQ(clean_hellaswag("a [b\nc] d [e]"), "a [b\nc] d ");
  EXPECT_EQ(clean_hellaswag("a [[b\n[c]d"), "a [[b\nd");
  EXPECT_EQ(clean_hellaswag("no end [here"), "no end [here");
  EXPECT_EQ(clean_hellaswag("[]a"), "a");
}

TEST(CleanHellaswag, StripsAsPythonDoesAndBeforeAllElse) {
  EXPECT_EQ(clean_hellaswag("\u00a0\u2003\x1c a [x]\n"), "a ");
  EXPECT_EQ(clean_hellaswag(""), "");
}

}  // namespace
}  // namespace xsa::tasks
