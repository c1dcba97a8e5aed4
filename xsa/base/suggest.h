// "did you mean ...?" for an unknown key, flag or name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xsa {

/// " (did you mean 'lr'?)" for the candidate with the smallest edit distance, or "" where none is
/// near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace xsa
