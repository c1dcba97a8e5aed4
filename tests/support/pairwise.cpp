#include "tests/support/pairwise.h"

#include <set>
#include <tuple>

#include "xsa/base/rng.h"

namespace xsa::testing {
namespace {

constexpr int kCandidates = 20;  // rows tried for each one taken

/// (factor, its value, a later factor, its value)
using Pair = std::tuple<int, int, int, int>;
using Row = std::vector<int>;

class Cover {
 public:
  Cover(const std::vector<int>& values, std::uint64_t seed) : values_(values), rng_(seed) {
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g)
        for (int a = 0; a < values_[f]; ++a)
          for (int b = 0; b < values_[g]; ++b) open_.insert({f, a, g, b});
  }

  bool done() const { return open_.empty(); }

  /// The best of some candidates; its pairs are covered from now on.
  Row next() {
    Row best;
    int most = -1;
    for (int n = 0; n < kCandidates; ++n) {
      const Row row = candidate();
      int covered = 0;
      for (int f = 0; f < factors(); ++f) covered += gain(row, f, row[f]);
      if (covered > most) most = covered, best = row;
    }
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g) open_.erase({f, best[f], g, best[g]});
    return best;
  }

 private:
  int factors() const { return static_cast<int>(values_.size()); }

  /// Starts from a pair that is still open, so that every row covers something.
  Row candidate() {
    Row row(values_.size(), -1);
    auto start = open_.begin();
    std::advance(start, rng_.below(open_.size()));
    const auto [f, a, g, b] = *start;
    row[f] = a, row[g] = b;
    for (const std::int64_t next : rng_.permutation(factors()))
      if (row[next] < 0) row[next] = best_value(row, static_cast<int>(next));
    return row;
  }

  int best_value(const Row& row, int factor) {
    int best = 0, most = -1;
    const auto first = static_cast<int>(rng_.below(values_[factor]));  // ties go to any of them
    for (int n = 0; n < values_[factor]; ++n) {
      const int value = (first + n) % values_[factor];
      const int covered = gain(row, factor, value);
      if (covered > most) most = covered, best = value;
    }
    return best;
  }

  /// Open pairs of `value` with what the row has.
  int gain(const Row& row, int factor, int value) const {
    int open = 0;
    for (int g = 0; g < factors(); ++g) {
      if (g == factor || row[g] < 0) continue;
      open += static_cast<int>(open_.count(g < factor ? Pair{g, row[g], factor, value}
                                                      : Pair{factor, value, g, row[g]}));
    }
    return open;
  }

  std::vector<int> values_;
  Rng rng_;
  std::set<Pair> open_;
};

}  // namespace

std::vector<std::vector<int>> all_pairs(const std::vector<int>& values, std::uint64_t seed) {
  Cover cover(values, seed);
  std::vector<Row> rows;
  while (!cover.done()) rows.push_back(cover.next());
  return rows;
}

}  // namespace xsa::testing
