#include "xsa/checkpoint/runs.h"

#include <algorithm>
#include <system_error>

namespace xsa::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 4;  // runs/SWEEP/points/POINT, and one above

void collect(const fs::path& folder, int depth, std::vector<fs::path>& runs) {
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.') || entry->is_symlink(ignored) ||
        !entry->is_directory(ignored))
      continue;
    if (is_run(path))
      runs.push_back(path);
    else if (depth < kMaxDepth)
      collect(path, depth + 1, runs);
  }
}

}  // namespace

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  return has("recipe.json") && (has("metrics.jsonl") || has("checkpoints") || has("summary.json"));
}

std::vector<fs::path> runs_below(const fs::path& folder) {
  std::vector<fs::path> runs;
  collect(folder, 1, runs);
  std::ranges::sort(runs);
  return runs;
}

}  // namespace xsa::checkpoint
