// The exclusion alone against the double reference, on every instruction set that this machine has.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/kernels/cpu/exclude_fixture.h"
#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"

namespace xsa::kernels::testing_exclude {
namespace {

using testing::is_near;
using testing::same_bits;

class ExcludeKernel : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, ExcludeKernel,
                         ::testing::ValuesIn(instruction_sets()),
                         [](const auto& each) { return each.param; });

void run(Problem& problem, std::int64_t workers = 1) {
  const Parallel parallel = workers == 1 ? serial() : threads(workers);
  ExcludeParams params = problem.params();
  params.parallel = &parallel;
  exclude_forward(params);
  exclude_backward(params);
}

void expect_matches_reference(Problem& problem) {
  SCOPED_TRACE(describe(problem.spec));
  run(problem);
  const ReferenceExclude out = reference_exclude(problem.params());
  const ReferenceExcludeBackward gradients = reference_exclude_backward(problem.params());
  const testing::ExcludeTolerances tolerance = problem.tolerances();
  EXPECT_TRUE(is_near(problem.z.values(), out.z, tolerance.z)) << "z";
  EXPECT_TRUE(is_near(doubles(problem.c), out.c, tolerance.c)) << "c";
  EXPECT_TRUE(is_near(problem.dy.values(), gradients.dy, tolerance.dy)) << "dy";
  EXPECT_TRUE(is_near(problem.dv.values(), gradients.dv, tolerance.dv)) << "dv";
  if (!problem.learned_strength.empty()) {
    EXPECT_TRUE(is_near(doubles(problem.dlearned_strength), gradients.dlearned_strength,
                        tolerance.dlearned_strength))
        << "dlearned_strength";
  }
  for (const Array* array : {&problem.z, &problem.dy, &problem.dv})
    EXPECT_TRUE(array->gaps_untouched());
}
void expect_matches_reference(const Spec& spec) {
  Problem problem(spec);
  expect_matches_reference(problem);
}

constexpr Type kTypes[] = {Type::kFloat32, Type::kBFloat16, Type::kFloat16};

TEST_P(ExcludeKernel, EqualsTheReferenceForEveryValueDimension) {
  // Lanes 1, 4, 8, 16; steps of one vector or two; 64 and 128 by themselves; no upper limit.
  for (const Type type : kTypes)
    for (const std::int64_t dim : {1,  2,  3,  4,  5,  7,  8,   9,   15,  16,  17,  31,  32,
                                   33, 63, 64, 65, 80, 96, 127, 128, 129, 255, 256, 257, 1000})
      for (const std::int64_t key_heads : {1, 2}) {
        Spec spec;
        spec.type = type, spec.value_dim = dim, spec.key_heads = key_heads, spec.seed = dim;
        expect_matches_reference(spec);
      }
}

TEST_P(ExcludeKernel, EqualsTheReferenceForEveryLayoutAndType) {
  for (const Layout layout : {Layout::kDense, Layout::kTokenMajor, Layout::kPadded,
                              Layout::kInnermost, Layout::kExpanded})
    for (const Layout out :
         {Layout::kDense, Layout::kTokenMajor, Layout::kPadded, Layout::kInnermost})
      for (const Type type : kTypes)
        for (const std::int64_t key_heads : {2, 4}) {
          Spec spec;
          spec.batch = 2, spec.query_heads = 4, spec.key_heads = key_heads, spec.queries = 7;
          spec.keys = 9, spec.value_dim = 37, spec.layout = layout, spec.out_layout = out;
          spec.type = type;
          expect_matches_reference(spec);
        }
}

TEST_P(ExcludeKernel, EqualsTheReferenceForGroupsStrengthsAndOffsets) {
  std::uint64_t seed = 0;
  for (const auto& [batch, query_heads, key_heads] :
       std::vector<std::array<std::int64_t, 3>>{{2, 4, 2}, {1, 6, 1}, {3, 3, 3}, {1, 12, 4}})
    for (const double strength : {1.0, 0.0, 0.5, -1.5, 2.0})
      for (const auto& [queries, keys, own_offset] : std::vector<std::array<std::int64_t, 3>>{
               {9, 9, 0}, {1, 40, 39}, {5, 12, 0}, {5, 12, 3}}) {
        Spec spec;
        spec.batch = batch, spec.query_heads = query_heads, spec.key_heads = key_heads;
        spec.queries = queries, spec.keys = keys, spec.own_offset = own_offset;
        spec.strength = strength, spec.seed = ++seed, spec.type = kTypes[seed % 3];
        expect_matches_reference(spec);
      }
}

TEST_P(ExcludeKernel, EqualsTheReferenceWhereEpsDecides) {
  for (const double eps : {3.0, 100.0}) {
    Spec spec;
    spec.eps = eps, spec.key_heads = 1;
    expect_matches_reference(spec);
  }
}

TEST_P(ExcludeKernel, TakesALearnedStrengthOfEveryForm) {
  Spec spec;
  spec.batch = 2, spec.query_heads = 4, spec.key_heads = 2, spec.queries = 6, spec.keys = 8;
  for (const std::array<std::int64_t, 3>& stride :
       std::vector<std::array<std::int64_t, 3>>{{0, 0, 0}, {0, 1, 0}, {24, 6, 1}}) {
    Problem problem(spec);
    Rng rng(3);
    for (int n = 0; n < 48; ++n)
      problem.learned_strength.push_back(n == 2 ? 0 : static_cast<float>(rng.normal()));
    problem.learned_strength_stride = stride;
    expect_matches_reference(problem);
  }
}

TEST_P(ExcludeKernel, BitsDoNotDependOnWorkersOrOrder) {
  for (const Type type : kTypes)
    for (const Layout out : {Layout::kDense, Layout::kTokenMajor}) {
      Spec spec;
      spec.query_heads = 6, spec.key_heads = 2, spec.queries = 300, spec.keys = 310;
      spec.value_dim = 64, spec.type = type;
      Problem one(spec);
      run(one);
      spec.out_layout = out;
      Problem more(spec);
      run(more, 3);
      for (const auto output : {&Problem::z, &Problem::dy, &Problem::dv})
        EXPECT_TRUE(same_bits((more.*output).values(), (one.*output).values()));
      EXPECT_TRUE(same_bits(more.c, one.c));
    }
}

TEST_P(ExcludeKernel, BitsDoNotDependOnStridesOrBatchNeighbours) {
  Spec spec;
  spec.batch = 3, spec.value_dim = 37;
  Problem batch(spec);
  run(batch);
  spec.batch = 1, spec.layout = spec.out_layout = Layout::kInnermost;
  Problem alone(spec);
  for (const auto input : {&Problem::y, &Problem::v, &Problem::dz})
    (alone.*input).for_each([&](auto, auto h, auto t, auto d) {
      (alone.*input).set(0, h, t, d, (batch.*input).get(2, h, t, d));
    });
  run(alone);
  for (const auto output : {&Problem::z, &Problem::dy, &Problem::dv}) {
    const std::vector<double> all = (batch.*output).values();
    const std::vector<double> last = (alone.*output).values();
    EXPECT_TRUE(same_bits(last, {all.end() - static_cast<std::ptrdiff_t>(last.size()), all.end()}));
  }
}

TEST_P(ExcludeKernel, StrengthZeroGivesYToTheBitAndStillMeasures) {
  for (const Type type : kTypes) {
    Spec spec;
    spec.type = type;
    Problem exclusive(spec);
    run(exclusive);
    spec.strength = 0;
    Problem standard(spec);
    standard.y.set(0, 0, 1, 0, -0.0);
    standard.v.set(0, 0, 2, 3, INFINITY);  // not even then
    run(standard);
    EXPECT_TRUE(same_bits(standard.z.values(), standard.y.values()));
    EXPECT_TRUE(same_bits(standard.dy.values(), standard.dz.values()));
    EXPECT_TRUE(is_near(standard.dv.values(), std::vector<double>(2 * 5 * 16), 0));
    EXPECT_EQ(standard.c[4], exclusive.c[4]);
  }
}

TEST_P(ExcludeKernel, LeavesNothingAlongTheOwnValue) {
  Spec spec;
  spec.value_dim = 64;
  Problem problem(spec);
  run(problem);
  for (std::int64_t t = 0; t < 5; ++t) {
    double along = 0, norm = 0;
    for (std::int64_t d = 0; d < 64; ++d) {
      along += problem.z.get(0, 1, t, d) * problem.v.get(0, 1, t, d);
      norm += std::abs(problem.v.get(0, 1, t, d));
    }
    EXPECT_NEAR(along, 0, std::ldexp(norm, -21));
  }
}

TEST_P(ExcludeKernel, HugeTinyAndZeroValuesStayFinite) {
  for (const double size : {1e30, 1e19, 1e-10, 1e-13, 1e-25, 0.0})
    for (const std::int64_t key_heads : {1, 2}) {
      Spec spec;
      spec.key_heads = key_heads;
      Problem problem(spec);
      problem.v.for_each([&](auto... at) { problem.v.set(at..., size * problem.v.get(at...)); });
      SCOPED_TRACE(size);
      expect_matches_reference(problem);
      for (const auto output : {&Problem::z, &Problem::dy, &Problem::dv})
        for (const double value : (problem.*output).values()) EXPECT_TRUE(std::isfinite(value));
      if (size == 0) {
        EXPECT_TRUE(same_bits(problem.z.values(), problem.y.values()));
      }
    }
}

TEST_P(ExcludeKernel, GradientsHoldWhereYAndItsOwnValueAreFarApart) {
  // c is about |y| / |v| and the other factor |dz| / |v|: neither their product nor a sum of
  // products may leave fp32 where the gradients do not.
  struct Scales {
    double y, v, dz;
  };
  for (const auto& [y, v, dz] : std::vector<Scales>{{1e15, 1e-12, 1},
                                                    {1e-15, 1e14, 1},
                                                    {1e-20, 1e12, 1e-2},
                                                    {1e10, 1e-12, 1e6},
                                                    {1e25, 1e-12, 1e-10},
                                                    {1e-28, 1e-12, 1},
                                                    {1, 1e-14, 1e-31},
                                                    {1e-31, 1e-14, 1},
                                                    {1e-10, 1e3, 1e-20}})
    for (const std::int64_t key_heads : {1, 2})
      for (const double strength : {1.0, 0.5}) {
        Spec spec;
        spec.key_heads = key_heads, spec.strength = strength, spec.value_dim = 24;
        spec.eps = 1e-18;
        Problem problem(spec);
        const auto scale = [](Array& array, double by) {
          array.for_each([&](auto... at) { array.set(at..., by * array.get(at...)); });
        };
        scale(problem.y, y), scale(problem.v, v), scale(problem.dz, dz);
        SCOPED_TRACE(cat("y ", y, ", v ", v, ", dz ", dz));
        expect_matches_reference(problem);
      }
}

TEST_P(ExcludeKernel, HugeStrengthsMakeNoNan) {
  for (const Type type : kTypes) {
    Spec spec;
    spec.strength = 1e38, spec.type = type;
    Problem problem(spec);
    problem.v.set(0, 0, 1, 0, 0);  // 0 times an infinite factor
    run(problem);
    for (const double value : problem.z.values()) EXPECT_FALSE(std::isnan(value));
    for (const double value : problem.dy.values()) EXPECT_FALSE(std::isnan(value));
  }
}

TEST_P(ExcludeKernel, ANanReachesItsOwnRowsAlone) {
  for (const Type type : kTypes)
    for (const double strange : {double{NAN}, double{INFINITY}}) {
      Spec spec;
      spec.type = type, spec.query_heads = 4, spec.queries = 4, spec.value_dim = 40;
      Problem clean(spec), dirty(spec);
      run(clean);
      dirty.v.set(0, 0, 2, 33, strange);  // owned by row 1 of heads 0 and 1
      dirty.y.set(0, 2, 3, 0, NAN);
      run(dirty);
      dirty.z.for_each([&](auto b, auto h, auto t, auto d) {
        if ((h < 2 && t == 1) || (h == 2 && t == 3))
          EXPECT_FALSE(std::isfinite(dirty.z.get(b, h, t, d)) && strange != strange) << h << t << d;
        else
          EXPECT_EQ(dirty.z.get(b, h, t, d), clean.z.get(b, h, t, d)) << h << t << d;
      });
      dirty.dv.for_each([&](auto b, auto k, auto s, auto d) {
        const bool reached = (k == 0 && s == 2) || (k == 1 && s == 4);
        if (!reached) {
          EXPECT_EQ(dirty.dv.get(b, k, s, d), clean.dv.get(b, k, s, d)) << k << s << d;
        }
      });
      EXPECT_TRUE(std::isnan(dirty.dv.get(0, 1, 4, 0)));
    }
}

TEST_P(ExcludeKernel, EmptySizesAreFine) {
  Spec spec;
  spec.batch = 0;
  Problem no_batch(spec);
  run(no_batch);
  spec.batch = 1, spec.queries = 0;
  Problem no_queries(spec);
  run(no_queries);
  EXPECT_TRUE(is_near(no_queries.dv.values(), std::vector<double>(2 * 5 * 16), 0));
  spec.keys = 0;
  Problem nothing(spec);
  run(nothing);
  spec.query_heads = 0, spec.queries = spec.keys = 5;
  Problem no_heads(spec);
  run(no_heads);
  EXPECT_TRUE(is_near(no_heads.dv.values(), std::vector<double>(2 * 5 * 16), 0));
}

TEST_P(ExcludeKernel, SixteenBitTypesRoundWithoutBias) {
  for (const Type type : {Type::kBFloat16, Type::kFloat16}) {
    Spec spec;
    spec.type = type, spec.queries = spec.keys = 200, spec.value_dim = 64, spec.strength = 0.01;
    Problem problem(spec);
    problem.y.for_each(  // positive, so that truncating would shift the mean
        [&](auto... at) { problem.y.set(at..., 1 + std::abs(problem.y.get(at...))); });
    run(problem);
    const double bias =
        testing::mean_signed_error(problem.z.values(), reference_exclude(problem.params()).z);
    EXPECT_LT(std::abs(bias), 0.1 * testing::unit_roundoff(type));
  }
}

TEST_P(ExcludeKernel, OffsetsBeyond31BitsAreFine) {
  // 4 rows, 2^30 floats apart, in memory that is reserved and hardly touched.
  constexpr std::int64_t kStride = std::int64_t{1} << 30;
  constexpr std::size_t kBytes = 4 * kStride * sizeof(float);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 16 GiB of address space";
  Spec spec;
  spec.query_heads = spec.key_heads = 1, spec.queries = spec.keys = 4;
  Problem near(spec);
  near.v.for_each([&](auto, auto, auto s, auto d) {
    static_cast<float*>(memory)[s * kStride + d] = static_cast<float>(near.v.get(0, 0, s, d));
  });
  run(near);
  const std::vector<double> z = near.z.values(), dy = near.dy.values();
  ExcludeParams far = near.params();
  far.v = {memory, {0, 0, kStride, 1}};
  exclude_forward(far);
  exclude_backward(far);
  EXPECT_TRUE(same_bits(near.z.values(), z));
  EXPECT_TRUE(same_bits(near.dy.values(), dy));
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace xsa::kernels::testing_exclude
