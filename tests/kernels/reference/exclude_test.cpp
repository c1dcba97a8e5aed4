// The reference of the exclusion alone against finite differences.
#include "xsa/kernels/exclude.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "xsa/base/rng.h"

namespace xsa::kernels {
namespace {

using testing::Array;

TEST(ReferenceExclude, GradientsAreFiniteDifferences) {
  for (const double eps : {1e-12, 10.0}) {
    ExcludeParams params;
    params.batch = 2, params.query_heads = 4, params.key_heads = 2, params.queries = 3;
    params.keys = 5, params.value_dim = 3, params.own_offset = 1, params.eps = eps;
    params.type = Type::kFloat64, params.strength = 0.7;
    Array y(Type::kFloat64, {2, 4, 3, 3}), dz = y, v(Type::kFloat64, {2, 2, 5, 3});
    Rng rng(1);
    for (Array* array : {&y, &dz, &v})
      array->for_each([&](auto... at) { array->set(at..., rng.normal()); });
    params.y = y.view(), params.v = v.view(), params.dz = dz.view();

    const auto loss = [&] {
      const std::vector<double> z = reference_exclude(params).z, gradient = dz.values();
      return std::inner_product(z.begin(), z.end(), gradient.begin(), 0.0);
    };
    const auto numeric = [&](Array& array) {
      std::vector<double> gradient;
      array.for_each([&](auto... at) {
        const double value = array.get(at...), step = 1e-5;
        array.set(at..., value + step);
        const double above = loss();
        array.set(at..., value - step);
        gradient.push_back((above - loss()) / (2 * step));
        array.set(at..., value);
      });
      return gradient;
    };
    const ReferenceExcludeBackward out = reference_exclude_backward(params);
    EXPECT_TRUE(testing::is_near(out.dy, numeric(y), 2e-8));
    EXPECT_TRUE(testing::is_near(out.dv, numeric(v), 2e-8));
    const double at = params.strength;
    params.strength = at + 1e-5;
    const double above = loss();
    params.strength = at - 1e-5;
    EXPECT_NEAR(std::accumulate(out.dlearned_strength.begin(), out.dlearned_strength.end(), 0.0),
                (above - loss()) / 2e-5, 2e-8);
  }
}

}  // namespace
}  // namespace xsa::kernels
