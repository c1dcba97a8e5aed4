// Trainings that are compared saw the same text: one that changed in between would look like a
// gain.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace xsa::study {

struct TrainedText {
  std::string run, sha256;  // as in its summary.json
};

/// Throws Error naming two runs of `folder` that saw different texts; `source` is what they read.
void check_same_text(const std::filesystem::path& folder, const std::string& source,
                     const std::vector<TrainedText>& texts);

}  // namespace xsa::study
