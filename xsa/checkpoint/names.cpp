#include "xsa/checkpoint/names.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa::checkpoint {

namespace fs = std::filesystem;

std::string folder_name(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "%s%06lld", kStepPrefix.data(), static_cast<long long>(step));
  return name;
}

std::optional<std::int64_t> step_of(const std::string& name) {
  std::int64_t step = 0;
  const char *begin = name.data() + std::min(name.size(), kStepPrefix.size()),
             *end = name.data() + name.size();
  const auto [last, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || last != end || step < 0 || folder_name(step) != name)
    return std::nullopt;
  return step;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(status.type() != fs::file_type::none, path.string(), ": cannot inspect: ", error.message());
  return fs::exists(status);
}

std::vector<std::int64_t> steps_in(const fs::path& root) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error))
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::int64_t> newest_first(const fs::path& root, std::int64_t step) {
  std::vector<std::int64_t> steps = steps_in(root);
  std::sort(steps.begin(), steps.end(), [step](std::int64_t a, std::int64_t b) {
    return std::pair(a > step, -a) < std::pair(b > step, -b);
  });
  return steps;
}

bool is_checkpoint(const fs::path& path) {
  return step_of(path.filename().string()).has_value() || is_there(path / kManifest);
}

fs::path root_of(const fs::path& path) {
  if (is_checkpoint(path)) return path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path inner = path / "checkpoints";
  return is_there(inner) ? inner : path;
}

namespace {

/// The folder that a mark, LATEST or BEST, names.
std::optional<fs::path> marked(const fs::path& mark) {
  if (!is_there(mark)) return std::nullopt;
  std::string name = read_file(mark);
  if (name.ends_with('\n')) name.pop_back();
  check(step_of(name).has_value(), mark.string(), ": expected the name of a checkpoint, e.g. ",
        folder_name(300), ", got '", name, "'");
  return mark.parent_path() / name;
}

/// "200 (best), 300, 400 (latest)"
std::string list_of(const fs::path& root) {
  const auto is_marked = [&](const char* mark, std::int64_t step) {
    try {
      return marked(root / mark) == root / folder_name(step);
    } catch (const Error&) {
      return false;
    }
  };
  std::string list;
  for (const std::int64_t step : steps_in(root)) {
    const bool is_best = is_marked(kBest, step), is_latest = is_marked(kLatest, step);
    list += cat(list.empty() ? "" : ", ", step, is_best || is_latest ? " (" : "",
                is_best ? "best" : "", is_best && is_latest ? ", " : "", is_latest ? "latest" : "",
                is_best || is_latest ? ")" : "");
  }
  return list;
}

}  // namespace

std::optional<fs::path> latest(const fs::path& root) { return marked(root / kLatest); }

std::optional<fs::path> best(const fs::path& root) { return marked(root / kBest); }

bool is_run_or_checkpoint(const fs::path& path) {
  const fs::path clean = path.has_filename() ? path : path.parent_path();  // without a final '/'
  return is_checkpoint(clean) || root_of(clean) != clean || is_there(clean / kLatest) ||
         !steps_in(clean).empty();
}

fs::path named_checkpoint(const fs::path& path) {
  const std::string text = path.string();
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || is_there(path)) return path;
  const fs::path run = text.substr(0, at);
  const std::string name = text.substr(at + 1);
  if (!is_there(run) || !is_run_or_checkpoint(run)) return path;
  const fs::path root = root_of(run.has_filename() ? run : run.parent_path());
  if (name == "best" || name == "latest") {
    const auto found = name == "best" ? best(root) : latest(root);
    if (found && is_there(*found)) return *found;
  } else {
    std::int64_t step = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (is_number && is_there(root / folder_name(step))) return root / folder_name(step);
  }
  const std::string list = list_of(root);
  throw UsageError(cat(text, ": expected @best, @latest or the step of a checkpoint; ",
                       run.string(), " has ",
                       list.empty() ? "none" : cat("those of the steps ", list)));
}

}  // namespace xsa::checkpoint
