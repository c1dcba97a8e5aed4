// "did you mean ...?" for an unknown key, flag or name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xsa {

/// Letters to add, remove or replace until `a` is `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the smallest edit distance; "" where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// " (did you mean 'lr'?)" for the nearest candidate, or "" where none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace xsa
