// Problems of the exclusion alone: arrays by seed, and the ExcludeParams that point at them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/problem.h"
#include "tests/support/tolerance.h"
#include "xsa/base/error.h"
#include "xsa/base/rng.h"
#include "xsa/kernels/exclude.h"

namespace xsa::kernels::testing_exclude {

using testing::Array;
using testing::Layout;

struct Spec {
  std::int64_t batch = 1, query_heads = 2, key_heads = 2, queries = 5, keys = 5, value_dim = 16;
  Type type = Type::kFloat32;
  Layout layout = Layout::kDense, out_layout = Layout::kDense;
  double strength = 1, eps = 1e-12;
  std::int64_t own_offset = -1;  // -1: keys - queries
  std::uint64_t seed = 1;
};

inline std::string describe(const Spec& s) {
  return cat("B ", s.batch, ", H ", s.query_heads, ", K ", s.key_heads, ", T ", s.queries, ", S ",
             s.keys, ", Dv ", s.value_dim, ", type ", static_cast<int>(s.type), ", layouts ",
             static_cast<int>(s.layout), " ", static_cast<int>(s.out_layout), ", strength ",
             s.strength, ", own_offset ", s.own_offset, ", seed ", s.seed);
}

struct Problem {
  explicit Problem(const Spec& s)
      : spec(s),
        y(s.type, {s.batch, s.query_heads, s.queries, s.value_dim}, s.layout),
        v(s.type, {s.batch, s.key_heads, s.keys, s.value_dim}, s.layout),
        dz(s.type, y.sizes, s.layout),
        z(s.type, y.sizes, s.out_layout),
        dy(s.type, y.sizes, s.out_layout),
        dv(s.type, v.sizes, s.out_layout) {
    const std::int64_t rows = s.batch * s.query_heads * s.queries;
    c.assign(rows, NAN), dlearned_strength.assign(rows, NAN);
    Rng rng(s.seed);
    for (Array* array : {&y, &v, &dz})
      array->for_each([&](auto... at) { array->set(at..., rng.normal()); });
  }

  ExcludeParams params() {
    ExcludeParams p;
    p.batch = spec.batch, p.query_heads = spec.query_heads, p.key_heads = spec.key_heads;
    p.queries = spec.queries, p.keys = spec.keys, p.value_dim = spec.value_dim;
    p.type = spec.type, p.strength = spec.strength, p.eps = spec.eps;
    p.own_offset = spec.own_offset < 0 ? spec.keys - spec.queries : spec.own_offset;
    p.y = y.view(), p.v = v.view(), p.dz = dz.view();
    p.z = z.mutable_view(), p.dy = dy.mutable_view(), p.dv = dv.mutable_view();
    p.c = c.data();
    if (!learned_strength.empty()) {
      p.learned_strength = learned_strength.data();
      p.learned_strength_stride = learned_strength_stride;
      p.dlearned_strength = dlearned_strength.data();
    }
    return p;
  }

  testing::ExcludeTolerances tolerances() const {
    double smallest = INFINITY, squares = 0, a = std::abs(spec.strength);
    v.for_each([&](auto b, auto h, auto s, auto d) {
      squares = (d == 0 ? 0 : squares) + std::pow(v.get(b, h, s, d), 2);
      if (d == spec.value_dim - 1 && squares > 0) smallest = std::min(smallest, squares);
    });
    if (!learned_strength.empty()) a = 0;
    for (const float each : learned_strength) a = std::max(a, std::abs(double{each}));
    return testing::exclude_tolerances({y.largest_norm(), dz.largest_norm(), v.largest_norm(),
                                        std::max(std::sqrt(smallest), spec.eps), a, spec.value_dim,
                                        spec.query_heads / spec.key_heads},
                                       spec.type);
  }

  Spec spec;
  Array y, v, dz, z, dy, dv;
  std::vector<float> c, dlearned_strength;
  std::vector<float> learned_strength;  // empty: not given
  std::array<std::int64_t, 3> learned_strength_stride{};
};

}  // namespace xsa::kernels::testing_exclude
