#include "xsa/data/row_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

std::vector<std::int64_t> rows_of(const RowOrder& order, std::int64_t rows) {
  std::vector<std::int64_t> result;
  for (std::int64_t place = 0; place < rows; ++place) result.push_back(order[place]);
  return result;
}

TEST(RowOrder, IsAPermutationWithATableOrWithout) {
  for (std::int64_t rows = 1; rows < 300; ++rows) {
    std::vector<std::int64_t> every(static_cast<std::size_t>(rows));
    std::iota(every.begin(), every.end(), 0);
    for (const std::int64_t tabled : {std::int64_t{0}, rows}) {
      std::vector<std::int64_t> found = rows_of(RowOrder(7, 3, rows, tabled), rows);
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, every) << rows << " rows, " << tabled << " in a table";
    }
  }
}

TEST(RowOrder, IsAPermutationOfMoreRowsThanATableHolds) {
  const std::int64_t rows = RowOrder::kTabledRows + 12'345;
  const RowOrder order(7, 0, rows);
  std::vector<bool> seen(static_cast<std::size_t>(rows), false);
  for (std::int64_t place = 0; place < rows; ++place) {
    const std::int64_t row = order[place];
    ASSERT_TRUE(row >= 0 && row < rows && !seen[static_cast<std::size_t>(row)]) << place;
    seen[static_cast<std::size_t>(row)] = true;
  }
}

TEST(RowOrder, DiffersForOtherEpochsAndSeeds) {
  for (const std::int64_t tabled : {0, 1000}) {
    const auto first = rows_of(RowOrder(7, 0, 1000, tabled), 1000);
    EXPECT_EQ(rows_of(RowOrder(7, 0, 1000, tabled), 1000), first);
    EXPECT_NE(rows_of(RowOrder(7, 1, 1000, tabled), 1000), first);
    EXPECT_NE(rows_of(RowOrder(8, 0, 1000, tabled), 1000), first);
  }
}

TEST(RowOrder, WithoutATableKeepsItsOrderFromVersionToVersion) {
  EXPECT_THAT(rows_of(RowOrder(1337, 0, 10, 0), 10),
              ::testing::ElementsAre(6, 5, 8, 9, 7, 0, 1, 2, 3, 4));
}

// Rank correlation of place and row, of neighbours, and of two epochs: within five standard
// deviations, 1 / sqrt(n), of none.
TEST(RowOrder, WithoutATableLooksRandom) {
  constexpr std::int64_t kRows = 100'000;
  const auto correlation = [](const std::vector<std::int64_t>& a,
                              const std::vector<std::int64_t>& b) {
    const double mean = (kRows - 1) / 2.0, variance = (static_cast<double>(kRows) * kRows - 1) / 12;
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += (static_cast<double>(a[i]) - mean) * (static_cast<double>(b[i]) - mean);
    return sum / static_cast<double>(a.size()) / variance;
  };
  const auto rows = rows_of(RowOrder(1, 0, kRows, 0), kRows);
  const auto other = rows_of(RowOrder(1, 1, kRows, 0), kRows);
  std::vector<std::int64_t> places(kRows), shifted = rows;
  std::iota(places.begin(), places.end(), 0);
  std::rotate(shifted.begin(), shifted.begin() + 1, shifted.end());
  const double limit = 5 / std::sqrt(static_cast<double>(kRows));
  EXPECT_LT(std::abs(correlation(rows, places)), limit);
  EXPECT_LT(std::abs(correlation(rows, shifted)), limit);
  EXPECT_LT(std::abs(correlation(rows, other)), limit);
  std::vector<std::int64_t> in_order;  // how often a batch's rows fall into each tenth
  for (int tenth = 0; tenth < 10; ++tenth)
    in_order.push_back(std::count_if(rows.begin(), rows.begin() + 10'000, [&](std::int64_t row) {
      return row / (kRows / 10) == tenth;
    }));
  for (const std::int64_t count : in_order) EXPECT_NEAR(static_cast<double>(count), 1000, 150);
}

}  // namespace
}  // namespace xsa::data
