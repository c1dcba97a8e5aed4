// Curves over seeds and their differences, as the page's plots show them.
#pragma once

#include <cstddef>
#include <span>

#include "xsa/report/comparison.h"

namespace xsa::report {

/// Mean at the steps that all curves have; NaN where one of them is.
Curve mean_of(std::span<const Curve> curves);

/// exclusive - standard in loss, at the steps that both have; tokens and time of the standard one.
Curve difference_of(const Curve& exclusive, const Curve& standard);

/// Centred moving mean of the loss over up to 2 `reach` + 1 points, fewer (but centred) near the
/// ends.
Curve smooth(Curve curve, std::size_t reach);

/// At most `limit` points: means over groups of neighbours.
Curve thin(const Curve& curve, std::size_t limit);

/// Everything that page.js plots.
Json plot_data(const Comparison& comparison, const Json& summary);

}  // namespace xsa::report
