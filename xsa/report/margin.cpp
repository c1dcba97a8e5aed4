#include "xsa/report/margin.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "xsa/report/judge.h"

namespace xsa::report {
namespace {

constexpr std::size_t kLeastForInterval = 3, kLeastForTests = 6, kMostForSignFlips = 20;

}  // namespace

double student_p(double t, std::int64_t freedom) {
  if (std::isinf(t)) return 0;
  // The finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4.
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(freedom)));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool is_odd = freedom % 2 == 1;
  double term = is_odd ? cosine : 1, sum = freedom == 1 ? 0 : term;
  for (std::int64_t k = is_odd ? 3 : 2; k <= freedom - 2; k += 2) {
    const auto order = static_cast<double>(k);
    term *= cosine * cosine * (order - 1) / order;
    sum += term;
  }
  const double within = is_odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
  return std::max(0.0, 1 - within);
}

double sign_flip_p(std::span<const double> values) {
  const auto sum_with = [&](std::uint64_t signs) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += (signs >> i & 1) != 0 ? -values[i] : values[i];
    return std::abs(sum);
  };
  const double seen = sum_with(0) * (1 - 1e-12);  // equal sums differ by rounding
  const std::uint64_t ways = std::uint64_t{1} << values.size();
  std::uint64_t as_far = 0;
  for (std::uint64_t signs = 0; signs < ways; ++signs) as_far += sum_with(signs) >= seen;
  return static_cast<double>(as_far) / static_cast<double>(ways);
}

Margin margin_of(std::vector<double> values) {
  Margin margin{std::move(values)};
  const std::size_t n = margin.values.size();
  if (n == 0) return margin;
  const auto count = static_cast<double>(n);
  double sum = 0, squares = 0;
  for (const double value : margin.values) sum += value;
  margin.mean = sum / count;
  if (n < 2) return margin;
  for (const double value : margin.values) squares += (value - margin.mean) * (value - margin.mean);
  margin.spread = std::sqrt(squares / (count - 1));
  const double error = margin.spread / std::sqrt(count);
  const auto freedom = static_cast<std::int64_t>(n) - 1;
  if (n >= kLeastForInterval) margin.half = student_t95(freedom) * error;
  if (n < kLeastForTests) return margin;
  margin.t_test = margin.mean == 0 ? 1 : student_p(margin.mean / error, freedom);
  if (n <= kMostForSignFlips) margin.sign_flips = sign_flip_p(margin.values);
  return margin;
}

Margin margin_between(const BySeed& standard, const BySeed& exclusive) {
  std::vector<double> values;
  for (const auto& [seed, loss] : standard) {
    const auto other = exclusive.find(seed);
    if (other != exclusive.end()) values.push_back(loss - other->second);
  }
  return margin_of(std::move(values));
}

}  // namespace xsa::report
