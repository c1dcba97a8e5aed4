#include "tests/support/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "xsa/base/error.h"
#include "xsa/base/rng.h"
#include "xsa/kernels/core/element.h"

namespace xsa::testing {
namespace {

using kernels::Type;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::array<std::int64_t, 4> strides_of(const std::array<std::int64_t, 4>& sizes, Layout layout) {
  const auto [a, b, c, d] = sizes;
  switch (layout) {
    case Layout::kTokenMajor:
      return {b * c * d, d, b * d, 1};
    case Layout::kPadded:
      return {b * (c + 1) * (d + 3), (c + 1) * (d + 3), d + 3, 1};
    case Layout::kInnermost:
      return {b * c, c, 1, a * b * c};
    case Layout::kExpanded:
      return {0, c * d, d, 1};
    case Layout::kDense:
      break;
  }
  return {b * c * d, c * d, d, 1};
}

void fill(Array& array, Rng& rng, double scale) {
  array.for_each([&](auto... at) { array.set(at..., scale * rng.normal()); });
}

}  // namespace

Array::Array(Type type_, std::array<std::int64_t, 4> sizes_, Layout layout)
    : type(type_), sizes(sizes_), stride(strides_of(sizes_, layout)) {
  elements_ = 8;  // some memory behind the last element
  for (int n = 0; n < 4; ++n) elements_ += stride[n] * std::max<std::int64_t>(sizes[n], 1);
  memory_.resize(elements_ * kernels::size_of(type) / 8 + 1);
  for (std::int64_t n = 0; n < elements_; ++n)
    kernels::store_element(type, memory_.data(), n, kNan);
}

std::int64_t Array::at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
  return a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
}

double Array::get(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
  return kernels::load_element(type, memory_.data(), at(a, b, c, d));
}

void Array::set(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, double value) {
  kernels::store_element(type, memory_.data(), at(a, b, c, d), value);
}

std::vector<double> Array::values() const {
  std::vector<double> all;
  for_each([&](auto... index) { all.push_back(get(index...)); });
  return all;
}

double Array::largest_norm() const {
  double largest = 0, squares = 0;
  for_each([&](auto a, auto b, auto c, auto d) {
    squares = (d == 0 ? 0 : squares) + std::pow(get(a, b, c, d), 2);
    largest = std::max(largest, squares);
  });
  return std::sqrt(largest);
}

double Array::smallest_norm() const {
  double smallest = INFINITY, squares = 0;
  for_each([&](auto a, auto b, auto c, auto d) {
    squares = (d == 0 ? 0 : squares) + std::pow(get(a, b, c, d), 2);
    if (d == sizes[3] - 1) smallest = std::min(smallest, squares);
  });
  return std::sqrt(smallest);
}

bool Array::gaps_untouched() const {
  std::vector<bool> used(elements_);
  for_each([&](auto... index) { used[at(index...)] = true; });
  for (std::int64_t n = 0; n < elements_; ++n)
    if (!used[n] && !std::isnan(kernels::load_element(type, memory_.data(), n))) return false;
  return true;
}

kernels::View Array::view() const { return {memory_.data(), stride}; }
kernels::MutableView Array::mutable_view() { return {memory_.data(), stride}; }

std::string describe(const ProblemSpec& spec) {
  return cat("B ", spec.batch, ", H ", spec.query_heads, ", K ", spec.key_heads, ", T ",
             spec.queries, ", S ", spec.keys, ", D ", spec.head_dim, ", Dv ", spec.value_dim,
             ", type ", static_cast<int>(spec.type), ", layout ", static_cast<int>(spec.layout),
             ", values ", static_cast<int>(spec.values), spec.is_causal ? ", causal" : "",
             ", strength ", spec.strength, ", own_offset ", spec.own_offset, ", seed ", spec.seed);
}

Problem::Problem(const ProblemSpec& spec) {
  options.batch = spec.batch;
  options.query_heads = spec.query_heads;
  options.key_heads = spec.key_heads;
  options.queries = spec.queries;
  options.keys = spec.keys;
  options.head_dim = spec.head_dim;
  options.value_dim = spec.value_dim;
  options.type = spec.type;
  options.is_causal = spec.is_causal;
  options.strength = spec.strength;
  options.scale = 1 / std::sqrt(static_cast<double>(spec.head_dim));
  options.own_offset = spec.own_offset < 0 ? spec.keys - spec.queries : spec.own_offset;

  const std::array q_sizes{spec.batch, spec.query_heads, spec.queries, spec.head_dim};
  const std::array z_sizes{spec.batch, spec.query_heads, spec.queries, spec.value_dim};
  const std::array k_sizes{spec.batch, spec.key_heads, spec.keys, spec.head_dim};
  const std::array v_sizes{spec.batch, spec.key_heads, spec.keys, spec.value_dim};
  const Layout out_layout = spec.layout == Layout::kExpanded ? Layout::kDense : spec.layout;
  q = Array(spec.type, q_sizes, spec.layout);
  k = Array(spec.type, k_sizes, spec.layout);
  v = Array(spec.type, v_sizes, spec.layout);
  dz = Array(spec.type, z_sizes, spec.layout);
  z = Array(spec.type, z_sizes, out_layout);
  dq = Array(spec.type, q_sizes, out_layout);
  dk = Array(spec.type, k_sizes, out_layout);
  dv = Array(spec.type, v_sizes, out_layout);
  const std::int64_t rows = spec.batch * spec.query_heads * spec.queries;
  lse.assign(rows, kNan);
  c.assign(rows, kNan);

  Rng rng(spec.seed);
  const bool peaky = spec.values != Values::kOrdinary;  // s has deviation 12: +-30 are ordinary
  fill(q, rng, peaky ? 3.5 : 1);
  fill(k, rng, peaky ? 3.5 : 1);
  fill(v, rng, 1);
  fill(dz, rng, 1);
  if (spec.values == Values::kHostile) {
    k.for_each([&](auto b, auto h, auto s, auto d) {
      if (s % 7 == 5) k.set(b, h, s, d, 20 * k.get(b, h, s, d));
    });
    v.for_each([&](auto b, auto h, auto s, auto d) {
      if (s % 5 == 3) v.set(b, h, s, d, 0.05 * v.get(b, h, s, d));
      if (s % 11 == 7) v.set(b, h, s, d, 0);
    });
  }
  if (spec.with_dlse)
    for (std::int64_t n = 0; n < rows; ++n) dlse.push_back(static_cast<float>(rng.normal()));
}

kernels::AttentionParams Problem::params() {
  const auto or_null = [](auto& array) { return array.empty() ? nullptr : array.data(); };
  kernels::AttentionParams params = options;
  params.q = q.view(), params.k = k.view(), params.v = v.view(), params.dz = dz.view();
  params.z = z.mutable_view(), params.dq = dq.mutable_view();
  params.dk = dk.mutable_view(), params.dv = dv.mutable_view();
  params.lse = lse.data(), params.c = c.data();
  params.dlse = or_null(dlse);
  params.learned_strength = or_null(learned_strength);
  params.sink_logits = or_null(sink_logits);
  params.dlearned_strength = or_null(dlearned_strength);
  params.dsink_logits = or_null(dsink_logits);
  params.cu_seqlens = or_null(cu_seqlens);
  params.documents = cu_seqlens.empty() ? 0 : static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  params.key_start = or_null(key_start);
  params.key_end = or_null(key_end);
  return params;
}

}  // namespace xsa::testing
