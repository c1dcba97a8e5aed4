// Comparing arrays of numbers so that nothing slips through: `diff > tolerance` is false for NaN.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace xsa::testing {

/// Passes only if every value is finite where the expected one is, within `tolerance` of it, and
/// otherwise the same infinity, or NaN where NaN is expected. A failure names the worst element.
::testing::AssertionResult is_near(const std::vector<double>& actual,
                                   const std::vector<double>& expected, double tolerance);

/// Same bits, NaN included: for "does not depend on the number of workers".
template <class Value>
::testing::AssertionResult same_bits(const std::vector<Value>& actual,
                                     const std::vector<Value>& expected) {
  if (actual.size() != expected.size())
    return ::testing::AssertionFailure()
           << actual.size() << " values, expected " << expected.size();
  for (std::size_t n = 0; n < actual.size(); ++n)
    if (std::memcmp(&actual[n], &expected[n], sizeof(Value)) != 0)
      return ::testing::AssertionFailure()
             << "bits differ first at " << n << ": " << +actual[n] << " and " << +expected[n];
  return ::testing::AssertionSuccess();
}

/// Mean of actual - expected in units of the mean |expected|: a rounding that truncates is biased
/// long before any single error is large.
double mean_signed_error(const std::vector<double>& actual, const std::vector<double>& expected);

}  // namespace xsa::testing
