#include "tests/support/compare.h"

#include <cmath>

namespace xsa::testing {
namespace {

/// How far apart two values are: infinite where their kinds differ.
double distance(double actual, double expected) {
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) == std::isnan(actual) ? 0 : INFINITY;
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected ? 0 : INFINITY;
  return std::abs(actual - expected);
}

}  // namespace

::testing::AssertionResult is_near(const std::vector<double>& actual,
                                   const std::vector<double>& expected, double tolerance) {
  if (actual.size() != expected.size())
    return ::testing::AssertionFailure()
           << actual.size() << " values, expected " << expected.size();
  double largest = 0;
  std::size_t worst = 0, wrong = 0;
  for (std::size_t n = 0; n < actual.size(); ++n) {
    const double error = distance(actual[n], expected[n]);
    if (!(error <= tolerance) || std::isinf(error)) ++wrong;
    if (error > largest) largest = error, worst = n;
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << wrong << " of " << actual.size() << " values differ by more than " << tolerance
         << "; the worst, at " << worst << ", is " << actual[worst] << ", expected "
         << expected[worst];
}

double mean_signed_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double error = 0, size = 0;
  for (std::size_t n = 0; n < actual.size(); ++n) {
    error += actual[n] - expected[n];
    size += std::abs(expected[n]);
  }
  return error / size;
}

}  // namespace xsa::testing
