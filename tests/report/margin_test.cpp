#include "xsa/report/margin.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace xsa::report {
namespace {

TEST(StudentP, AgreesWithTables) {  // two-sided 5 % and 1 % points
  EXPECT_NEAR(student_p(12.7062, 1), 0.05, 1e-5);
  EXPECT_NEAR(student_p(4.3027, 2), 0.05, 1e-5);
  EXPECT_NEAR(student_p(2.5706, 5), 0.05, 1e-5);
  EXPECT_NEAR(student_p(-4.0321, 5), 0.01, 1e-5);
  EXPECT_NEAR(student_p(2.3060, 8), 0.05, 1e-5);
  EXPECT_NEAR(student_p(2.0930, 19), 0.05, 1e-5);
  EXPECT_DOUBLE_EQ(student_p(0, 7), 1);
}

TEST(SignFlips, CountsEveryWayToChooseTheSigns) {
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{1, 2, 3, 4, 5, 6}), 2.0 / 64);
  // |1 + 2 - 4| = 1 is reached or passed by all 8.
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{1, 2, -4}), 1);
  // |-1 + 2 + 4| = 5: itself, 1 + 2 + 4 = 7, and their opposites.
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{-1, 2, 4}), 4.0 / 8);
}

TEST(Margin, TakesTheSeedsThatBothHave) {
  const Margin margin = margin_between({{1, 2.5}, {2, 2.25}, {3, 9}}, {{1, 2.0}, {2, 2.0}, {4, 1}});
  EXPECT_THAT(margin.values, ::testing::ElementsAre(0.5, 0.25));
  EXPECT_DOUBLE_EQ(margin.mean, 0.375);
  EXPECT_NEAR(margin.spread, 0.1767767, 1e-6);
}

TEST(Margin, HasAnIntervalFromThreeSeedsAndTestsFromSix) {
  EXPECT_TRUE(std::isnan(margin_of({}).mean));
  EXPECT_TRUE(std::isnan(margin_of({1}).spread));
  EXPECT_TRUE(std::isnan(margin_of({1, 2}).half));
  const Margin three = margin_of({1, 2, 3});
  EXPECT_NEAR(three.half, 4.3027 / std::sqrt(3.0), 1e-4);
  EXPECT_TRUE(std::isnan(margin_of({1, 2, 3, 4, 5}).t_test));
  const Margin six = margin_of({1, 2, 3, 4, 5, 6});
  EXPECT_NEAR(six.t_test, 0.0059335, 1e-6);  // t = 3.5 / (1.8708 / sqrt 6) = 4.5826, 5 degrees
  EXPECT_DOUBLE_EQ(six.sign_flips, 2.0 / 64);
}

TEST(Margin, OfEqualValuesIsCertainAndOfZerosIsNothing) {
  EXPECT_DOUBLE_EQ(margin_of(std::vector<double>(6, 0.5)).t_test, 0);
  EXPECT_DOUBLE_EQ(margin_of(std::vector<double>(6, 0.0)).t_test, 1);
  EXPECT_DOUBLE_EQ(margin_of(std::vector<double>(6, 0.0)).sign_flips, 1);
}

TEST(Margin, LeavesSignFlipsToTheTTestBeyondTwentySeeds) {
  const Margin margin = margin_of(std::vector<double>(21, 1.0));
  EXPECT_TRUE(std::isnan(margin.sign_flips));
  EXPECT_FALSE(std::isnan(margin.t_test));
}

}  // namespace
}  // namespace xsa::report
