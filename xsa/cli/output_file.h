// What a command is about to write, looked at before it measures: nothing of others is replaced, no
// input is, and nothing measured is lost for want of a place.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xsa::cli {

struct OutputRule {
  std::string flag;  // that names the place, for messages
  /// Files and folders that the command reads. "" is none.
  std::vector<std::filesystem::path> inputs;
  /// Whether a file with this beginning (16 MiB at most) is one that the command wrote before.
  std::function<bool(std::string_view beginning)> is_ours;
  bool overwrite = false;  // replace what others wrote, but never an input
};

/// Throws UsageError for a file that would be replaced and is an input, lies in a folder that is
/// one, or was not written by this command before, unless `overwrite` allows the last; Error for a
/// path that cannot be written. Empty files, devices and pipes may be written.
void check_output_file(const std::filesystem::path& path, const OutputRule& rule);

/// The same for the `files` of a folder. The folder is no input itself; where it holds something,
/// one of the files is there.
void check_output_folder(const std::filesystem::path& folder, const std::vector<std::string>& files,
                         const OutputRule& rule);

/// A flag and the place that it names; "" is none.
using Output = std::pair<std::string, std::filesystem::path>;

/// Throws UsageError where two of the outputs are one file; devices and pipes may be shared.
void check_distinct(const std::vector<Output>& outputs);

/// Whether the text is a JSON object with all these keys.
bool is_object_with(std::string_view text, const std::vector<std::string>& keys);

}  // namespace xsa::cli
