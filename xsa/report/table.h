// The comparison's table as cells of text, which the terminal and the page show alike.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "xsa/base/json.h"

namespace xsa::report {

/// label, standard, exclusive, difference, relative difference.
using Row = std::array<std::string, 5>;

inline const Row kTableHead = {"", "standard", "exclusive", "difference", "relative"};

/// One row a metric; means, "± spread" where there are several seeds, "–" where nothing is known.
std::vector<Row> table_rows(const Json& summary);

/// Rows of as many cells each as lines: the first column to the left, the others to the right. A
/// rule stands below the first row.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace xsa::report
