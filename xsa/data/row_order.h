// In which order an epoch takes its rows: a permutation that (seed, epoch) alone decide.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace xsa::data {

/// Up to kTabledRows rows stand in a table (Fisher-Yates, 8 bytes a row, 32 MiB at most). More are
/// permuted by a keyed function, without memory or time to begin with: a Feistel network over the
/// next even power of two, walked until it lands on a row (Black and Rogaway, "Ciphers with
/// arbitrary finite domains", 2002). Every row comes once either way.
class RowOrder {
 public:
  static constexpr std::int64_t kTabledRows = 1 << 22;

  RowOrder(std::uint64_t seed, std::int64_t epoch, std::int64_t rows,
           std::int64_t tabled_rows = kTabledRows);
  /// The row at a place in [0, rows).
  std::int64_t operator[](std::int64_t place) const {
    return table_.empty() ? walked(static_cast<std::uint64_t>(place))
                          : table_[static_cast<std::size_t>(place)];
  }

 private:
  std::int64_t walked(std::uint64_t place) const;

  static constexpr std::size_t kRounds = 8;
  std::vector<std::int64_t> table_;
  std::uint64_t rows_;
  int half_bits_ = 0;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace xsa::data
