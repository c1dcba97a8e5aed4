// The definition in code: docs/maths.md line by line, in double, one query at a time. Slow on
// purpose; every other path is held to it.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "xsa/kernels/attention.h"
#include "xsa/kernels/core/element.h"
#include "xsa/kernels/core/exclusion.h"
#include "xsa/kernels/core/mask.h"

namespace xsa::kernels {
namespace {

using Vector = std::vector<double>;

/// Row (b, h, t) of a 4-d array.
Vector row_of(Type type, const View& view, std::int64_t b, std::int64_t h, std::int64_t t,
              std::int64_t size) {
  const auto& stride = view.stride;
  Vector row(size);
  for (std::int64_t d = 0; d < size; ++d)
    row[d] = load_element(type, view.data,
                          b * stride[0] + h * stride[1] + t * stride[2] + d * stride[3]);
  return row;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

/// target += factor * source, `target` being size(source) long.
void add_scaled(double* target, double factor, const Vector& source) {
  for (std::size_t d = 0; d < source.size(); ++d) target[d] += factor * source[d];
}

/// Query i of head h in batch b, forward. The backward needs all of it.
struct Row {
  std::int64_t b = 0, h = 0, i = 0;
  std::vector<std::int64_t> keys;  // the visible ones, ascending
  Vector p;                        // their weights
  Vector q, w, y, z;               // w is zero where the own key is invisible
  double strength = 0, lse = 0, c = 0;
};

class Reference {
 public:
  explicit Reference(const AttentionParams& params) : p_(params) {}

  Row forward_row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    Row row;
    row.b = b, row.h = h, row.i = i;
    row.q = row_of(p_.type, p_.q, b, h, i, p_.head_dim);
    row.strength = strength(b, h, i);
    softmax(row);
    row.y = Vector(p_.value_dim);
    for (std::size_t n = 0; n < row.keys.size(); ++n)
      add_scaled(row.y.data(), row.p[n], value(b, h, row.keys[n]));
    exclude_own(row);
    return row;
  }

  /// Adds what one row gives to every gradient.
  void backward_row(const Row& row, ReferenceBackward& out) const {
    if (row.keys.empty() && !p_.sink_logits) return;
    const auto [b, h, i] = std::array{row.b, row.h, row.i};
    const std::int64_t at = index(b, h, i);
    const Vector dz = row_of(p_.type, p_.dz, b, h, i, p_.value_dim);

    // The exclusion, then flash attention's backward with dy in dz's place.
    Vector dy = dz;
    if (sees_own(row)) {
      const ExclusionGradient gradient =
          exclusion_gradient(row.strength, row.c, dot(dz, row.w), dot(row.w, row.w), p_.eps);
      double* dw = &out.dv[key_row(b, h, p_.own_offset + i) * p_.value_dim];
      add_scaled(dy.data(), -gradient.dy_w, row.w);
      add_scaled(dw, gradient.dw_dz, dz);
      Vector mirrored = row.z;
      add_scaled(mirrored.data(), -gradient.z_w, row.w);
      add_scaled(dw, -gradient.dy_w, mirrored);
      out.dlearned_strength[at] = gradient.dstrength;
    }
    const double dlse = p_.dlse ? p_.dlse[at] : 0;
    const double delta = (row.keys.empty() ? 0 : dot(row.y, dy)) - dlse;
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const std::int64_t j = row.keys[n];
      const double ds = row.p[n] * (dot(dy, value(b, h, j)) - delta) * p_.scale;
      add_scaled(&out.dq[at * p_.head_dim], ds, key(b, h, j));
      add_scaled(&out.dk[key_row(b, h, j) * p_.head_dim], ds, row.q);
      add_scaled(&out.dv[key_row(b, h, j) * p_.value_dim], row.p[n], dy);
    }
    if (p_.sink_logits && p_.sink_logits[h] > -INFINITY)
      out.dsink_logits[h] -= std::exp(p_.sink_logits[h] - row.lse) * delta;
  }

  std::int64_t index(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return (b * p_.query_heads + h) * p_.queries + i;
  }

 private:
  std::int64_t key_head(std::int64_t h) const { return h / (p_.query_heads / p_.key_heads); }
  std::int64_t key_row(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return (b * p_.key_heads + key_head(h)) * p_.keys + j;
  }
  Vector key(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return row_of(p_.type, p_.k, b, key_head(h), j, p_.head_dim);
  }
  Vector value(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return row_of(p_.type, p_.v, b, key_head(h), j, p_.value_dim);
  }
  double strength(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const auto& stride = p_.learned_strength_stride;
    return p_.learned_strength ? p_.learned_strength[b * stride[0] + h * stride[1] + i * stride[2]]
                               : p_.strength;
  }
  bool sees_own(const Row& row) const {
    return contains(visible_keys(p_, row.b, row.i), p_.own_offset + row.i);
  }

  void softmax(Row& row) const {
    const VisibleKeys visible = visible_keys(p_, row.b, row.i);
    double max = p_.sink_logits ? p_.sink_logits[row.h] : -INFINITY;
    for (std::int64_t j = 0; j < p_.keys; ++j) {
      if (!contains(visible, j)) continue;
      row.keys.push_back(j);
      row.p.push_back(p_.scale * dot(row.q, key(row.b, row.h, j)));
      if (row.p.back() > max) max = row.p.back();
    }
    double sum = 0;  // a row without a key, whose sink is -inf, has no weight at all
    if (p_.sink_logits && max > -INFINITY) sum = std::exp(p_.sink_logits[row.h] - max);
    for (const double s : row.p) sum += std::exp(s - max);
    row.lse = sum == 0 ? -INFINITY : max + std::log(sum);
    for (double& s : row.p) s = std::exp(s - row.lse);
  }

  void exclude_own(Row& row) const {
    row.z = row.y;
    row.w = Vector(p_.value_dim);
    if (!sees_own(row)) return;
    row.w = value(row.b, row.h, p_.own_offset + row.i);
    row.c = exclusion_coefficient(dot(row.y, row.w), dot(row.w, row.w), p_.eps);
    if (row.strength == 0) return;
    for (std::int64_t d = 0; d < p_.value_dim; ++d)
      row.z[d] = exclude(row.y[d], row.strength * row.c, row.w[d]);
  }

  const AttentionParams& p_;
};

template <class Visit>
void for_each_row(const AttentionParams& params, Visit visit) {
  for (std::int64_t b = 0; b < params.batch; ++b)
    for (std::int64_t h = 0; h < params.query_heads; ++h)
      for (std::int64_t i = 0; i < params.queries; ++i) visit(b, h, i);
}

}  // namespace

ReferenceForward reference_forward(const AttentionParams& params) {
  const Reference reference(params);
  const std::int64_t rows = params.batch * params.query_heads * params.queries;
  ReferenceForward out{Vector(rows * params.value_dim), Vector(rows), Vector(rows)};
  for_each_row(params, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Row row = reference.forward_row(b, h, i);
    const std::int64_t at = reference.index(b, h, i);
    std::copy(row.z.begin(), row.z.end(), out.z.begin() + at * params.value_dim);
    out.lse[at] = row.lse;
    out.c[at] = row.c;
  });
  return out;
}

ReferenceBackward reference_backward(const AttentionParams& params) {
  const Reference reference(params);
  const std::int64_t rows = params.batch * params.query_heads * params.queries;
  const std::int64_t key_rows = params.batch * params.key_heads * params.keys;
  ReferenceBackward out{Vector(rows * params.head_dim), Vector(key_rows * params.head_dim),
                        Vector(key_rows * params.value_dim), Vector(rows),
                        Vector(params.query_heads)};
  for_each_row(params, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    reference.backward_row(reference.forward_row(b, h, i), out);
  });
  return out;
}

}  // namespace xsa::kernels
