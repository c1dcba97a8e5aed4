// The verdict behind verdict() in comparison.h, in parts.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/base/json.h"

namespace xsa::report {

/// Differences of validation loss below this (nats a token) are none to speak of: perplexity agrees
/// within 0.2 %.
inline constexpr double kSmallDifference = 0.002;

enum class Outcome { kLower, kHigher, kUndecided, kNoDifference, kUnknown };

struct Judgement {
  Outcome outcome = Outcome::kUnknown;
  std::string headline, detail;
};

/// Judges the validation losses of summarize_runs (docs/report.md has the rule).
Judgement judge(const Json& summary);

/// The two-sided 95 % point of Student's t with `freedom` >= 1 degrees of freedom.
double student_t95(std::int64_t freedom);

}  // namespace xsa::report
