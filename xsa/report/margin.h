// Margins between two kinds of runs, seed by seed, and what chance has to say about their mean.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

namespace xsa::report {

/// A final loss of each seed; not finite ones are left out by whoever fills it.
using BySeed = std::map<std::int64_t, double>;

/// NaN where too few values are known.
struct Margin {
  std::vector<double> values;  // one a seed that both have
  double mean = std::numeric_limits<double>::quiet_NaN();
  double spread = std::numeric_limits<double>::quiet_NaN();  // sample standard deviation; from 2
  double half = std::numeric_limits<double>::quiet_NaN();    // of the 95 % t interval; from 3
  double t_test = std::numeric_limits<double>::quiet_NaN();  // two-sided p; from 6
  double sign_flips = std::numeric_limits<double>::quiet_NaN();  // exact two-sided p; 6 to 20
};

/// Of any values about 0: mean, spread, interval and tests.
Margin margin_of(std::vector<double> values);

/// `standard` - `exclusive` at the seeds that both have: above 0, XSA is ahead.
Margin margin_between(const BySeed& standard, const BySeed& exclusive);

/// The chance of a Student t with `freedom` >= 1 degrees of freedom at least as far from 0 as `t`.
double student_p(double t, std::int64_t freedom);

/// The share of all 2^n ways to choose the values' signs that give a sum at least as far from 0.
double sign_flip_p(std::span<const double> values);

}  // namespace xsa::report
