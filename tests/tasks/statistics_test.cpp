#include "xsa/tasks/statistics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/tasks/python_random.h"

namespace xsa::tasks {
namespace {

using ::testing::HasSubstr;

/// Made-up log-likelihoods; the expected figures are what lm_eval 0.4.13 gives for these.
std::vector<double> made_up(int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const long long residue = (static_cast<long long>(i) * i * 37 + 11) % 1009;
    values.push_back(-static_cast<double>(residue) / 128 - 0.001 * i / count);
  }
  return values;
}

TEST(PythonRandom, IsPythons) {
  struct Case {
    std::uint32_t seed;
    double first, second, last_of_block, first_of_next, thousandth;
  };
  for (const Case& expected : {
           Case{0, 0.8444218515250481, 0.7579544029403025, 0.39380795178170946, 0.5190037287013293,
                0.4804125346981437},
           Case{1, 0.13436424411240122, 0.8474337369372327, 0.3272414146871332, 0.3167351468856021,
                0.7062615472551386},
           Case{99, 0.40397807494366633, 0.20007544457494542, 0.5241194621196376,
                0.9916408513082008, 0.15455054961261028},
           Case{4294967295u, 0.6353574441341173, 0.20319993954407756, 0.8815812211541993,
                0.49918500993323056, 0.3214643568909129},
       }) {
    PythonRandom random(expected.seed);
    std::vector<double> drawn;
    for (int i = 0; i < 1000; ++i) drawn.push_back(random.random());
    EXPECT_EQ(drawn[0], expected.first);
    EXPECT_EQ(drawn[1], expected.second);
    EXPECT_EQ(drawn[311], expected.last_of_block);
    EXPECT_EQ(drawn[312], expected.first_of_next);
    EXPECT_EQ(drawn[999], expected.thousandth);
  }
}

TEST(Statistics, AreTheHarnessesOwnToTheLastBit) {
  EXPECT_DOUBLE_EQ(perplexity(made_up(2)), 1.2595049538618823);
  EXPECT_DOUBLE_EQ(perplexity(made_up(300)), 49.77064819855818);
  EXPECT_DOUBLE_EQ(mean_error(made_up(2)), 0.14478125);
  EXPECT_DOUBLE_EQ(mean_error(made_up(7)), 0.9721907299341515);
  EXPECT_DOUBLE_EQ(mean_error(made_up(300)), 0.13789439436905643);
  const std::vector<double> all_right = {1, 1, 1};
  EXPECT_EQ(mean_error(all_right), 0);
}

TEST(PerplexityError, DrawsWhatPythonDraws) {
  EXPECT_DOUBLE_EQ(perplexity_error(made_up(2), 2, serial()), 0.25878755827905703);
  EXPECT_DOUBLE_EQ(perplexity_error(made_up(7), 1000, serial()), 29.412657557737724);
  EXPECT_DOUBLE_EQ(perplexity_error(made_up(300), 2000, serial()), 7.0145188127715645);
}

TEST(PerplexityError, LeavesOutWhatIsOverAMultipleOfAThousand) {
  EXPECT_DOUBLE_EQ(perplexity_error(made_up(100), 1500, serial()), 14.34647471360215);
}

TEST(PerplexityError, DoesNotDependOnTheWorkers) {
  const std::vector<double> values = made_up(50);
  std::int64_t reported = 0;
  EXPECT_EQ(perplexity_error(values, 5000, threads(3), [&](std::int64_t done) { reported = done; }),
            perplexity_error(values, 5000, serial()));
  EXPECT_EQ(reported, 5000);
}

TEST(Statistics, RefuseWhatHasNoAnswer) {
  const std::vector<double> one = {-1}, hopeless = {-800, -900};
  EXPECT_THROW(mean_error(one), Error);
  EXPECT_THROW(perplexity_error(one, 1, serial()), Error);
  EXPECT_THAT(testing::error_of([&] { perplexity(hopeless); }), HasSubstr("-850"));
}

}  // namespace
}  // namespace xsa::tasks
