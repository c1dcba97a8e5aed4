#include "xsa/tasks/rolling.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace xsa::tasks
