// What people type who come from other programs, or without a setting's table: --steps,
// --max_iters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xsa::cli {

/// What `flag` ("--max_iters") may mean to a command that knows `known` ("--text",
/// "--train.steps", ...). `given` is what followed it, "=100", or "".
///   " (here it is --train.steps=100)": the same words but for '-', '_' and the table, or the name
///       that nanoGPT, litgpt, transformers and lm-evaluation-harness have for it;
///   " (the recipe is named without a flag: ...)": what has no flag here;
///   " (did you mean '--seeds'?)": the nearest; "" where none is near.
std::string what_is_meant(std::string_view flag, const std::string& given,
                          const std::vector<std::string>& known);

}  // namespace xsa::cli
