#include "xsa/cli/output_file.h"

#include <algorithm>
#include <map>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"

namespace xsa::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxBeginning = 16 << 20;

/// Without links, "." and a final "/"; the path itself where that cannot be told.
fs::path real(const fs::path& path) {
  std::error_code error;
  const fs::path found = fs::weakly_canonical(path, error);
  const fs::path& known = error ? path : found;
  return known.has_filename() ? known : known.parent_path();
}

bool is_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

std::string beginning_of(const fs::path& path) {
  const RandomAccessFile file(path);
  std::string text(static_cast<std::size_t>(std::min(file.size(), kMaxBeginning)), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

void check_output_file(const fs::path& path, const OutputRule& rule) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) > 0) {
    const bool ours = rule.is_ours(beginning_of(path));
    for (const fs::path& input : rule.inputs) {
      if (input.empty()) continue;
      const bool is_input = fs::equivalent(path, input, ignored) ||
                            (!ours && (is_in(real(path), real(input)) ||
                                       is_in(fs::absolute(path).lexically_normal(),
                                             fs::absolute(input).lexically_normal())));
      check_usage(!is_input, rule.flag, ": ", path.string(),
                  " is what the command reads; name another place");
    }
    check_usage(ours || rule.overwrite, rule.flag, ": ", path.string(),
                " is there, and this command did not write it; name another place, or replace it "
                "with --overwrite");
  }
  check_writable(path);
}

void check_output_folder(const fs::path& folder, const std::vector<std::string>& files,
                         const OutputRule& rule) {
  std::error_code ignored;
  for (const fs::path& input : rule.inputs)
    check_usage(input.empty() || real(folder) != real(input), rule.flag, ": ", folder.string(),
                " is what the command reads; name another folder");
  const bool known = std::ranges::any_of(
      files, [&](const std::string& name) { return fs::exists(folder / name, ignored); });
  const fs::directory_iterator entries(folder, ignored);
  check_usage(known || rule.overwrite || entries == fs::directory_iterator(), rule.flag, ": ",
              folder.string(),
              " holds other files; name another folder, or write into this one with --overwrite");
  for (const std::string& name : files) check_output_file(folder / name, rule);
}

void check_distinct(const std::vector<Output>& outputs) {
  std::map<fs::path, const Output*> taken;
  for (const Output& output : outputs) {
    std::error_code ignored;
    const fs::path& path = output.second;
    if (path.empty() || (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)))
      continue;
    const auto [first, is_new] = taken.emplace(real(fs::absolute(path)), &output);
    check_usage(is_new, output.first, ": ", path.string(), " is what ", first->second->first,
                " writes; name another place");
  }
}

bool is_object_with(std::string_view text, const std::vector<std::string>& keys) {
  const Json json = try_parse_json(text);
  return json.is_object() &&
         std::ranges::all_of(keys, [&](const std::string& key) { return json.contains(key); });
}

}  // namespace xsa::cli
