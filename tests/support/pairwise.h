// Covering arrays: a few combinations of many options in which every two values of any two options
// stand together at least once. Most faults of options need only two of them.
#pragma once

#include <cstdint>
#include <vector>

namespace xsa::testing {

/// Rows of choices: row[f] in [0, values[f]). For any two factors every pair of values is in some
/// row. Greedy (each row takes what covers most that is still uncovered), by seed; a few times the
/// product of the two largest factors at most.
std::vector<std::vector<int>> all_pairs(const std::vector<int>& values, std::uint64_t seed = 1);

}  // namespace xsa::testing
