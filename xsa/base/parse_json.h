// JSON text that others wrote: read only where it nests as little as what walks it by recursion (to
// copy, compare or print it) has stack for.
#pragma once

#include <string_view>

#include "xsa/base/json.h"

namespace xsa {

/// Arrays and objects within one another.
inline constexpr int kMaxJsonDepth = 100;

/// Throws Error that tells the place of the first mistake, or that the text nests deeper than
/// kMaxJsonDepth.
Json parse_json(std::string_view text);
/// The same, its keys sorted: those of a large object are found quickly.
nlohmann::json parse_sorted_json(std::string_view text);
/// A value that is_discarded() in the place of an error.
Json try_parse_json(std::string_view text);

}  // namespace xsa
