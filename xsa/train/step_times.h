// How long the newest steps took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace xsa::train {

class StepTimes {
 public:
  static constexpr std::size_t kKept = 1000;

  StepTimes() = default;
  explicit StepTimes(std::vector<double> seconds) : seconds_(std::move(seconds)) {}

  void add(double seconds) {
    if (seconds_.size() == kKept) seconds_.erase(seconds_.begin());
    seconds_.push_back(seconds);
  }
  /// Oldest first.
  const std::vector<double>& seconds() const { return seconds_; }
  /// Of at least one step.
  double median() const {
    std::vector<double> sorted = seconds_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  std::vector<double> seconds_;
};

}  // namespace xsa::train
