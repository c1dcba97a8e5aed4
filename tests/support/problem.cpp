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
    if (d == sizes[3] - 1 && squares > 0) smallest = std::min(smallest, squares);
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
  return cat(
      "B ", spec.batch, ", H ", spec.query_heads, ", K ", spec.key_heads, ", T ", spec.queries,
      ", S ", spec.keys, ", D ", spec.head_dim, ", Dv ", spec.value_dim, ", type ",
      static_cast<int>(spec.type), ", layout ", static_cast<int>(spec.layout), ", values ",
      static_cast<int>(spec.values), spec.is_causal ? ", causal" : "", ", strength ", spec.strength,
      ", own_offset ", spec.own_offset, ", window ", spec.window, ", num_sink_keys ",
      spec.num_sink_keys, spec.with_sink_logits ? ", sink_logits" : "", ", packing ",
      static_cast<int>(spec.packing), ", ranges ", static_cast<int>(spec.ranges), ", learned ",
      static_cast<int>(spec.learned), spec.with_dlse ? ", dlse" : "", ", seed ", spec.seed);
}

Problem::Problem(const ProblemSpec& spec) : spec_(spec) {
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
  fill_values(rng);
  if (spec.with_dlse)
    for (std::int64_t n = 0; n < rows; ++n) dlse.push_back(static_cast<float>(rng.normal()));

  options.window = spec.window, options.num_sink_keys = spec.num_sink_keys;
  if (spec.with_sink_logits) {
    for (std::int64_t h = 0; h < spec.query_heads; ++h)
      sink_logits.push_back(static_cast<float>(2 * rng.normal()));
    dsink_logits.assign(spec.batch * spec.query_heads, kNan);
  }
  if (spec.packing != Packing::kNone) cut_into_documents(rng);
  if (spec.ranges != Ranges::kAll) limit_keys();
  if (spec.learned != Learned::kNone) draw_learned(rng);
}

void Problem::fill_values(Rng& rng) {
  const bool peaky = spec_.values != Values::kOrdinary;  // s has deviation 12: +-30 are ordinary
  fill(q, rng, peaky ? 3.5 : 1);
  fill(k, rng, peaky ? 3.5 : 1);
  fill(v, rng, 1);
  fill(dz, rng, 1);
  if (spec_.values != Values::kHostile) return;
  const auto seen_before = [](const Array& array, auto b) { return b > 0 && array.stride[0] == 0; };
  k.for_each([&](auto b, auto h, auto s, auto d) {
    if (seen_before(k, b)) return;
    if (s % 7 == 5) k.set(b, h, s, d, 20 * k.get(b, h, s, d));
  });
  v.for_each([&](auto b, auto h, auto s, auto d) {
    if (seen_before(v, b)) return;
    if (s % 5 == 3) v.set(b, h, s, d, 0.05 * v.get(b, h, s, d));
    if (s % 11 == 7) v.set(b, h, s, d, 0);
  });
}

void Problem::cut_into_documents(Rng& rng) {
  check(spec_.batch == 1, "Problem: documents need batch 1, got ", spec_.batch);
  const auto queries = static_cast<std::int32_t>(spec_.queries);
  if (spec_.packing == Packing::kFew) {
    const std::int32_t one = std::min(queries, 1);
    cu_seqlens = {0, one, one, one + (queries - one) / 3, queries};
    return;
  }
  cu_seqlens = {0};
  while (cu_seqlens.back() < queries)
    cu_seqlens.push_back(
        std::min(queries, cu_seqlens.back() + static_cast<std::int32_t>(rng.below(8))));
}

void Problem::limit_keys() {
  const bool left = spec_.ranges != Ranges::kRight, right = spec_.ranges != Ranges::kLeft;
  const std::int64_t keys = spec_.keys;
  for (std::int64_t b = 0; b < spec_.batch; ++b) {  // each sequence its own
    if (left) key_start.push_back(std::min(keys, keys / 5 + b));
    if (right) key_end.push_back(std::max<std::int64_t>(keys - keys / 4 - 2 * b, 0));
  }
  if (spec_.ranges == Ranges::kEmpty && spec_.batch > 1) key_end[0] = key_start[0];
}

void Problem::draw_learned(Rng& rng) {
  const std::int64_t heads = spec_.query_heads, queries = spec_.queries;
  const std::int64_t rows = spec_.batch * heads * queries;
  options.learned_strength_stride = {0, 0, 0};
  if (spec_.learned == Learned::kHead) options.learned_strength_stride = {0, 1, 0};
  if (spec_.learned == Learned::kToken)
    options.learned_strength_stride = {heads * queries, queries, 1};
  const std::int64_t count = spec_.learned == Learned::kScalar ? 1
                             : spec_.learned == Learned::kHead ? heads
                                                               : rows;
  for (std::int64_t n = 0; n < count; ++n)
    learned_strength.push_back(n % 3 == 1 ? 0.0f : static_cast<float>(rng.normal()));
  dlearned_strength.assign(rows, kNan);
}

Problem Problem::in(Type type) const {
  ProblemSpec spec = spec_;
  spec.type = type;
  Problem other(spec);
  for (const auto input : {&Problem::q, &Problem::k, &Problem::v, &Problem::dz})
    (this->*input).for_each([&](auto... at) {
      (other.*input).set(at..., (this->*input).get(at...));
    });
  return other;
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
