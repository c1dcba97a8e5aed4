#include "xsa/data/row_order.h"

#include <bit>

#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

/// splitmix64's finish: every bit of x reaches every bit of the result.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

RowOrder::RowOrder(std::uint64_t seed, std::int64_t epoch, std::int64_t rows,
                   std::int64_t tabled_rows)
    : rows_(static_cast<std::uint64_t>(rows)) {
  // The seed is scrambled before the epoch is added, so that neighbouring seeds share no orders.
  Rng rng(Rng(seed).next() + static_cast<std::uint64_t>(epoch));
  if (rows <= tabled_rows) {
    table_ = rng.permutation(rows);
    return;
  }
  half_bits_ = (std::bit_width(rows_ - 1) + 1) / 2;
  for (std::uint64_t& key : keys_) key = rng.next();
}

std::int64_t RowOrder::walked(std::uint64_t place) const {
  const std::uint64_t half = (std::uint64_t{1} << half_bits_) - 1;
  do {  // fewer than four times on average: the domain is less than four times the rows
    std::uint64_t left = place >> half_bits_, right = place & half;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix(right + key) & half);
      left = right;
      right = next;
    }
    place = left << half_bits_ | right;
  } while (place >= rows_);
  return static_cast<std::int64_t>(place);
}

}  // namespace xsa::data
