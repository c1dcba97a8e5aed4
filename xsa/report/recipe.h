// The resolved recipe: what the two models share, where they differ, and how to repeat the run.
#pragma once

#include <string>
#include <vector>

#include "xsa/report/comparison.h"

namespace xsa::report {

/// One key of the recipe, e.g. "train.lr", with the values of both (JSON text; "–" where absent).
struct Setting {
  std::string key, standard, exclusive;
  bool differs = false;  // within any seed's pair of runs
};

/// The first standard and the first exclusive run's settings, in the recipe's order.
std::vector<Setting> settings_of(const Comparison& comparison);

/// compare.json's "command" where it has one; else a command line with every setting spelled out.
std::string repeat_command(const Comparison& comparison);

}  // namespace xsa::report
