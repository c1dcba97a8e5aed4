// Where the time of a piece of Torch code goes: each operator's own time, without that of the
// operators that it calls.
#pragma once

#include <ATen/record_function.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace xsa::bench {

/// Records the calling thread while it lives; backward of a graph on the CPU runs there too. Costs
/// about a microsecond an operator.
class OperatorTimes {
 public:
  OperatorTimes() { current() = this, handle_ = at::addThreadLocalCallback(callback()); }
  ~OperatorTimes() { at::removeCallback(handle_), current() = nullptr; }
  OperatorTimes(const OperatorTimes&) = delete;
  OperatorTimes& operator=(const OperatorTimes&) = delete;

  /// Own milliseconds by name since the last call.
  std::map<std::string, double> take() { return std::exchange(own_ms_, {}); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Frame {
    const char* name;
    Clock::time_point start;
    double inner_ms = 0;
  };

  static OperatorTimes*& current() {
    static thread_local OperatorTimes* times = nullptr;
    return times;
  }
  static at::RecordFunctionCallback callback() {
    return at::RecordFunctionCallback(
        [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          current()->frames_.push_back({call.name(), Clock::now()});
          return nullptr;
        },
        [](const at::RecordFunction&, at::ObserverContext*) { current()->pop(); });
  }
  void pop() {
    const Frame frame = frames_.back();
    frames_.pop_back();
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - frame.start).count();
    own_ms_[frame.name] += ms - frame.inner_ms;
    if (!frames_.empty()) frames_.back().inner_ms += ms;
  }

  at::CallbackHandle handle_;
  std::vector<Frame> frames_;
  std::map<std::string, double> own_ms_;
};

}  // namespace xsa::bench
