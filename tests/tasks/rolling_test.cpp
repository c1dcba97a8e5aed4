#include "xsa/tasks/rolling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "xsa/base/error.h"

namespace xsa::tasks {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<text::Token>;

TEST(RollingWindows, PredictEveryTokenOnceWithOneTokenOfContext) {
  const Ids ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<Window> windows = rolling_windows(ids, 0, 4);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_THAT(windows[0].context, ElementsAre(0));
  EXPECT_THAT(windows[0].predicted, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(windows[1].context, ElementsAre(4));
  EXPECT_THAT(windows[1].predicted, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(windows[2].context, ElementsAre(6, 7, 8));
  EXPECT_THAT(windows[2].predicted, ElementsAre(9, 10));
}

TEST(RollingWindows, ShowTheModelAtMostItsLength) {
  Ids ids;
  for (text::Token id = 1; id < 60; ++id) {
    ids.push_back(id);
    for (std::int64_t length = 1; length < 12; ++length) {
      Ids predicted;
      for (const Window& window : rolling_windows(ids, 0, length)) {
        EXPECT_LE(window.context.size() + window.predicted.size() - 1,
                  static_cast<std::size_t>(length));
        ASSERT_FALSE(window.context.empty());
        EXPECT_EQ(window.context.back() + 1, window.predicted.front());
        predicted.insert(predicted.end(), window.predicted.begin(), window.predicted.end());
      }
      EXPECT_EQ(predicted, ids);
    }
  }
}

TEST(RollingWindows, AreNoneForNoTokens) {
  EXPECT_TRUE(rolling_windows({}, 0, 4).empty());
  EXPECT_THROW(rolling_windows({}, 0, 0), Error);
}

TEST(CountWords, CountsAsPythonsSplitAtWhiteSpace) {
  EXPECT_EQ(count_words(""), 1);
  EXPECT_EQ(count_words("word"), 1);
  EXPECT_EQ(count_words(" a  b\n"), 4);
  EXPECT_EQ(count_words("a\u2003\u00a0b\x1c\x85"), 3);  // a lone byte 0x85 is no space
  EXPECT_EQ(count_words("a\xc2\x85"), 2);
}

TEST(RollingMetrics, AreWeightedByWordsAndBytes) {
  const std::vector<RollingScore> scores = {{-10, 4, 20}, {-2, 1, 4}};
  const Json metrics = rolling_metrics(scores);
  EXPECT_DOUBLE_EQ(metrics.at("word_perplexity").get<double>(), std::exp(12.0 / 5));
  EXPECT_DOUBLE_EQ(metrics.at("byte_perplexity").get<double>(), std::exp(0.5));
  EXPECT_DOUBLE_EQ(metrics.at("bits_per_byte").get<double>(), 0.5 / std::log(2.0));
}

TEST(RollingMetrics, RefuseWhatIsNotFiniteAndNothingAtAll) {
  const std::vector<RollingScore> bad = {{std::nan(""), 1, 1}};
  EXPECT_THROW(rolling_metrics(bad), Error);
  EXPECT_THROW(rolling_metrics({}), Error);
}

}  // namespace
}  // namespace xsa::tasks
