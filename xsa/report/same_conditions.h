// Runs that stand together on a page: only those under the same conditions (xsa/base/conditions.h).
#pragma once

#include <cstddef>
#include <vector>

#include "xsa/base/conditions.h"
#include "xsa/report/parts.h"

namespace xsa::report {

/// The run's place among classes of runs that stand under the same conditions; a new one at their
/// end where it is like no first run of any.
std::size_t class_of(const Run& run, std::vector<Conditions>& classes);

/// Runs of one group that do not stand under the same conditions become groups of their own, with
/// what sets them apart behind their name.
void split_by_conditions(Study& study);

}  // namespace xsa::report
