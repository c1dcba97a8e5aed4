// The one place for tolerances. Each is a rounding error times the size that it acts on, derived
// from the type's eps and the norms of the inputs: never a round number that happens to pass.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/support/problem.h"

namespace xsa::testing {

/// Largest errors to accept, absolute, for one problem's outputs.
struct Tolerances {
  double z, lse, c, dq, dk, dv;
  double dlearned_strength, dsink_logits;  // of one row; of one head of one sequence
};

/// The largest magnitude, 0 of none.
inline double largest(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

/// Half a unit in the last place of 1.
inline double unit_roundoff(kernels::Type type) {
  switch (type) {
    case kernels::Type::kFloat64:
      return std::ldexp(1, -53);
    case kernels::Type::kFloat32:
      return std::ldexp(1, -24);
    case kernels::Type::kFloat16:
      return std::ldexp(1, -11);
    case kernels::Type::kBFloat16:
      break;
  }
  return std::ldexp(1, -8);
}

/// For a kernel with fp32 arithmetic that reads and writes problem.options.type. With |q| etc. the
/// largest row norms, a score's error is about u sqrt(D) scale |q| |k|, and p's relative error
/// twice that (s and lse) plus that of 2^x; y and its gradients inherit it times |v|. A sink logit
/// is a score that is only rounded. What is stored is rounded once more. `slack` covers constants:
/// sums of a few such errors. Gradients that are sums over rows or keys have errors that add up
/// like a random walk, or, for what one fp32 accumulator takes, like u times the number of terms.
inline Tolerances fused_tolerances(const Problem& problem, double slack = 4) {
  const auto& o = problem.options;
  if (o.batch * o.queries * o.keys == 0) return {};
  const double u = unit_roundoff(kernels::Type::kFloat32), stored = unit_roundoff(o.type);
  const double q = problem.q.largest_norm(), k = problem.k.largest_norm(),
               v = problem.v.largest_norm(), dz = problem.dz.largest_norm(),
               w = std::max(problem.v.smallest_norm(), o.eps);
  const double scale = std::abs(o.scale), sink = largest(problem.sink_logits);
  const double score = u * (std::sqrt(o.head_dim + 4.0) * scale * q * k + sink);
  const double p = 2 * score + u * (4 + std::sqrt(static_cast<double>(o.keys)));
  const double a =
      problem.learned_strength.empty() ? std::abs(o.strength) : largest(problem.learned_strength);
  // z is stored rounded, and delta = z . dz inherits that.
  const double from_z = o.type == kernels::Type::kFloat32 ? 0 : stored;
  const double rows = static_cast<double>(o.queries * o.query_heads / o.key_heads);
  const double dlse = largest(problem.dlse);
  const double delta = (1 + a) * dz * v + dlse;
  const double ds = (p + from_z) * (2 * (1 + a) * dz * v + dlse) * scale;
  const double direct = (p + u + from_z) * a * dz * (v / w) * (2 + a);
  const double rounding = o.type == kernels::Type::kFloat32 ? u : stored;
  Tolerances t{};
  t.z = slack * (p * (1 + a) * v + rounding * (1 + a) * v);
  t.lse = slack * (score + u * (4 + scale * q * k));
  t.c = slack * p * (v / w);
  t.dq = slack * (ds * k + rounding * (dz * v + dlse) * scale * k);
  t.dk = slack * std::sqrt(rows) * (ds * q + rounding * (dz * v + dlse) * scale * q);
  t.dv = slack *
         (std::sqrt(rows) * (p + rounding) * (1 + a) * dz + direct + rounding * a * dz * v / w);
  t.dlearned_strength = slack * (p + u * std::sqrt(static_cast<double>(o.value_dim))) * dz * v;
  t.dsink_logits = slack *
                   (std::sqrt(static_cast<double>(o.queries)) * (p + from_z) +
                    u * static_cast<double>(o.queries)) *
                   delta;
  return t;
}

/// Largest errors to accept for the exclusion alone.
struct ExcludeTolerances {
  double z, c, dy, dv, dlearned_strength;
};

/// A kernel with fp32 sums over `dim` elements; y, dz and w are the largest norms of a row,
/// `smallest_w` the smallest that is not zero (at least eps), `group` the rows that share a w, and
/// a the largest strength. A sum's relative error is about u sqrt(dim); |c w| <= |y|, and so on
/// (M 1). What is stored is rounded once more, and the backward reads z as it was stored.
struct ExcludeNorms {
  double y, dz, w, smallest_w, a;
  std::int64_t dim, group;
};
inline ExcludeTolerances exclude_tolerances(const ExcludeNorms& n, kernels::Type type,
                                            double slack = 4) {
  const double u = unit_roundoff(kernels::Type::kFloat32);
  const double stored = unit_roundoff(type);
  const double sum = u * (4 + std::sqrt(static_cast<double>(n.dim)));
  const double from_z = type == kernels::Type::kFloat32 ? 0 : stored;
  const double direct = n.a * n.y * n.dz / n.smallest_w * (4 + 2 * n.a);
  ExcludeTolerances t{};
  t.c = slack * sum * n.y / n.smallest_w;
  t.z = slack * (n.a * sum + stored * (1 + n.a)) * n.y;
  t.dy = slack * (n.a * sum + stored * (1 + n.a)) * n.dz;
  t.dv = slack * static_cast<double>(n.group) * (sum + from_z + stored) * direct;
  t.dlearned_strength = slack * sum * n.y * n.dz * n.w / n.smallest_w;
  return t;
}

/// For rotary positions in fp32 of values up to `largest`: the rounding of the first product, that
/// of the sum, which is at most sqrt(2) largest, and that of what is stored.
inline double rotary_tolerance(double largest, kernels::Type type) {
  const double u = unit_roundoff(kernels::Type::kFloat32);
  const double stored = type == kernels::Type::kFloat32 ? 0 : unit_roundoff(type);
  return (u + (u + stored) * std::sqrt(2.0)) * largest;
}

/// For a sum in fp32 of `terms` products of standard normals: it walks to sqrt(terms), and each of
/// as many roundings is of that size.
inline double linear_tolerance(std::int64_t terms, double slack = 4) {
  return slack * unit_roundoff(kernels::Type::kFloat32) * (2 + static_cast<double>(terms));
}

/// Largest errors of the fp32 LayerNorm of a residual sum, rows of `width`, where sums, normed
/// values and gradients have magnitudes up to these. Mean and variance are sums of `width`
/// roundings (their square root, as they fall both ways); what is stored is rounded once more.
struct LayerNormTolerances {
  double y, dx, dparameter;
};
struct LayerNormSizes {
  std::int64_t rows, width;
  double sum, normed, weight, rstd, dy, dsum;
};
inline LayerNormTolerances layer_norm_tolerances(const LayerNormSizes& z, kernels::Type type) {
  const double u = unit_roundoff(kernels::Type::kFloat32);
  const double stored = type == kernels::Type::kFloat32 ? u : unit_roundoff(type);
  const double roots = 4 + std::sqrt(static_cast<double>(z.width));
  // s is stored rounded before its mean is taken.
  const double n = u * roots * (z.normed + z.sum * z.rstd) + stored * z.sum * z.rstd * 2;
  const double g = z.weight * z.dy;
  const double dx = z.rstd * g * (n * (1 + z.normed) * 2 + u * roots * (2 + z.normed * z.normed));
  LayerNormTolerances t{};
  t.y = z.weight * n + stored * (z.weight * z.normed + 1);
  t.dx = dx + stored * (z.rstd * g * (2 + z.normed * z.normed) + z.dsum);
  // Rows' errors fall both ways, in the terms and in the sum, whose size is about sqrt(rows) terms.
  const double row_root = std::sqrt(static_cast<double>(z.rows));
  t.dparameter = row_root * (n + u * (4 + row_root) * (1 + z.normed)) * z.dy;
  return t;
}

/// For a path that is held to the same call in eager PyTorch, in the same type, with scores of
/// about 1: twice eager's error, and a floor where eager happens to be exact: the rounding of what
/// is stored (z too, of which delta = z . dz is made) and sixteen of the fp32 terms that a result
/// is a sum of (which may cancel), `term` being the largest of those.
inline double beside_eager(double eager_error, double largest, double term, kernels::Type type) {
  const double size = std::max(term, largest);
  return 2 * eager_error +
         (unit_roundoff(type) + 16 * unit_roundoff(kernels::Type::kFloat32)) * size;
}

}  // namespace xsa::testing
