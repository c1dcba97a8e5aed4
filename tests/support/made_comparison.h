// A made-up comparison folder with the shape of a real one (docs/run-folder.md), for tests and for
// looking at the page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace xsa::testing {

struct MadeComparison {
  std::string name = "demo";
  std::vector<std::int64_t> seeds = {1337};
  double gain = 0.11;  // by which XSA's final losses are lower
  bool diagnosed = true;
  bool evaluated = false;  // a task and a text beside each validation
};

/// Writes it into `folder`, which must be new or empty.
void write_comparison(const std::filesystem::path& folder, const MadeComparison& made);

}  // namespace xsa::testing
