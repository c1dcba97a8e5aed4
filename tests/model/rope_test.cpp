#include "xsa/model/rope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/model/eager.h"
#include "tests/model/watched_memory.h"

namespace xsa::model {
namespace {

constexpr std::int64_t kBatch = 2, kSteps = 19, kHeads = 6, kKvHeads = 3, kDim = 8;

at::Tensor random_qkv() {
  at::manual_seed(7);
  return at::randn({kBatch, kSteps, (kHeads + 2 * kKvHeads) * kDim});
}

at::Tensor part(const at::Tensor& qkv, std::int64_t first, std::int64_t count) {
  return qkv.narrow(2, first * kDim, count * kDim)
      .reshape({kBatch, kSteps, count, kDim})
      .transpose(1, 2);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(Rope, TurnsQueriesAndKeysAsTheFormulaSaysAndLeavesValues) {
  const at::Tensor qkv = random_qkv();
  const Heads heads = split_heads(qkv.clone(), kHeads, kKvHeads, rope_tables(32, kDim, 100));
  const at::Tensor wide = qkv.to(at::kDouble);
  EXPECT_LT(largest_difference(heads.q, eager::rope(part(wide, 0, kHeads), 100)), 1e-6);
  EXPECT_LT(largest_difference(heads.k, eager::rope(part(wide, kHeads, kKvHeads), 100)), 1e-6);
  EXPECT_TRUE(at::equal(heads.v, part(qkv, kHeads + kKvHeads, kKvHeads)));
}

TEST(Rope, HasTablesOfDoublePrecisionAtFarPositions) {
  const RopeTables tables = rope_tables(100'000, 64, 10'000);
  const double angle = 99'999 * std::pow(10'000.0, -2.0 * 5 / 64);
  EXPECT_FLOAT_EQ(tables.cos[99'999][5].item<float>(), static_cast<float>(std::cos(angle)));
  EXPECT_FLOAT_EQ(tables.sin[99'999][5].item<float>(), static_cast<float>(std::sin(angle)));
}

TEST(Rope, MakesScoresDependOnTheDistanceAlone) {
  at::manual_seed(8);
  const at::Tensor same = at::randn({1, 1, (kHeads + 2 * kKvHeads) * kDim}).expand({1, 40, -1});
  const Heads heads =
      split_heads(same.contiguous(), kHeads, kKvHeads, rope_tables(64, kDim, 10'000));
  const at::Tensor scores =
      at::matmul(heads.q.narrow(1, 0, kKvHeads), heads.k.transpose(2, 3));  // [1, K, T, T]
  const at::Tensor diagonal = scores.diagonal(5, 2, 3);
  EXPECT_LT(largest_difference(diagonal, diagonal.narrow(2, 0, 1).expand_as(diagonal)), 1e-5);
  EXPECT_GT(largest_difference(scores.select(2, 0), scores.select(3, 0)), 0.1);
}

TEST(Rope, HasTheGradientOfItsFormula) {
  const at::Tensor qkv = random_qkv().requires_grad_();
  const at::Tensor wide = qkv.detach().to(at::kDouble).requires_grad_();
  const Heads heads = split_heads(qkv * 1, kHeads, kKvHeads, rope_tables(32, kDim, 100));
  at::manual_seed(9);
  const at::Tensor a = at::randn_like(heads.q), b = at::randn_like(heads.k),
                   c = at::randn_like(heads.v);
  ((heads.q * a).sum() + (heads.k * b).sum() + (heads.v * c).sum()).backward();
  ((eager::rope(part(wide, 0, kHeads), 100) * a).sum() +
   (eager::rope(part(wide, kHeads, kKvHeads), 100) * b).sum() +
   (part(wide, kHeads + kKvHeads, kKvHeads) * c).sum())
      .backward();
  EXPECT_LT(largest_difference(qkv.grad(), wide.grad()), 1e-6);
}

TEST(Rope, GivesZeroGradientToPartsThatNothingUsed) {
  const at::Tensor qkv = random_qkv().requires_grad_();
  const Heads heads = split_heads(qkv * 1, kHeads, kKvHeads, rope_tables(32, kDim, 100));
  test::poison_new_memory();
  heads.v.sum().backward();
  const std::int64_t turned = (kHeads + kKvHeads) * kDim;
  EXPECT_TRUE(qkv.grad().narrow(2, 0, turned).eq(0).all().item<bool>());
  EXPECT_TRUE(qkv.grad().narrow(2, turned, kKvHeads * kDim).eq(1).all().item<bool>());
}

TEST(Rope, OnlyCutsWhereThereAreNoTables) {
  const at::Tensor qkv = random_qkv().requires_grad_();
  const Heads heads = split_heads(qkv * 1, kHeads, kKvHeads, {});
  EXPECT_TRUE(at::equal(heads.q, part(qkv, 0, kHeads)));
  heads.k.sum().backward();
  EXPECT_EQ(qkv.grad().sum().item<double>(), kBatch * kSteps * kKvHeads * kDim);
}

TEST(Rope, CopiesNothing) {
  const at::Tensor qkv = random_qkv();
  const Heads heads = split_heads(qkv, kHeads, kKvHeads, rope_tables(32, kDim, 100));
  EXPECT_TRUE(heads.q.is_alias_of(qkv));
  EXPECT_TRUE(heads.k.is_alias_of(qkv));
  EXPECT_TRUE(heads.v.is_alias_of(qkv));
}

}  // namespace
}  // namespace xsa::model
