#include "xsa/tasks/rolling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "xsa/base/error.h"

namespace xsa::tasks {

std::vector<Window> rolling_windows(std::span<const text::Token> ids, text::Token prefix,
                                    std::int64_t length) {
  check(length >= 1, "rolling windows: expected a context of 1 token or more, got ", length);
  const auto total = static_cast<std::int64_t>(ids.size());
  std::vector<Window> windows;
  for (std::int64_t begin = 0; begin < total; begin += length) {
    const std::int64_t end = std::min(begin + length, total);
    Window window;
    window.predicted.assign(ids.begin() + begin, ids.begin() + end);
    if (begin == 0) {
      window.context = {prefix};
    } else {  // what the model sees ends at end - 1 and is `length` long
      window.context.assign(ids.begin() + (end - length - 1), ids.begin() + begin);
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace xsa::tasks
