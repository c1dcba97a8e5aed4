// Which documents a source holds and which of them are held out for validation. Reads no text but
// the surroundings of a single file's cut.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/data/dataset.h"

namespace xsa::data {

/// The source that is no path.
inline constexpr std::string_view kShakespeare = "shakespeare";

struct SourceFile {
  std::string name;  // relative to the source's folder, with '/'
  std::filesystem::path path;
  std::int64_t bytes, modified_ns;
};

struct Source {
  std::string name;               // for people and folder names: "shakespeare", "novel.txt"
  std::string key;                // tells sources apart: "shakespeare" or an absolute path
  std::vector<SourceFile> files;  // sorted by name, at least one
  std::vector<std::string> passed_over{};
};

/// A file as it is now. Throws Error for what is missing or no regular file.
SourceFile inspect(const std::filesystem::path& path, std::string name);

/// Hidden files and folders, whose names begin with a point, are no data anywhere.
bool is_hidden(const std::filesystem::path& path);

/// The files of a folder, sorted by name, subfolders and links included. Hidden ones are left out,
/// and folders of shards, which are named in `passed_over`.
struct FolderFiles {
  std::vector<SourceFile> files;
  std::vector<std::string> passed_over;  // "NAME/"
};
FolderFiles files_of(const std::filesystem::path& folder);

/// Whether a source is no path but a pattern of *, ?, [a-z] or {one,two}; what it matches.
bool is_pattern(const std::string& source);
std::vector<std::filesystem::path> matches_of(const std::string& pattern);

/// Throws Error for a source that is missing, empty or unreadable.
Source find_source(const DataConfig& config);

/// The share of [0, 1) that a document's name or text falls on: below validation_fraction, it is
/// held out. It keeps its side when other documents come or go.
double place_of(std::string_view text);

/// Of documents on the side that is held out, or on the other one: whether one at `place` is nearer
/// to the other side than one at `nearest`. The nearest goes over where the other is empty.
bool is_nearer(double place, double nearest, bool held_out);

/// Which of the named documents are held out. Neither side is left empty: where all fall on one
/// side, the one nearest to the other goes over. At least two names.
std::vector<bool> held_out(const std::vector<std::string>& names, double fraction);

/// Where a single file is cut: its training text is [0, cut). The cut is the last line border at or
/// before (1 - fraction) of its size; or, where as many bytes before that as are held out (at most
/// a MiB) have none, a border between characters. The file has at least two bytes.
std::int64_t cut_of(const SourceFile& file, double fraction);
/// The same of any text of `bytes`: `read` calls take with its bytes [begin, end), in pieces.
using ReadText = std::function<void(std::int64_t begin, std::int64_t end,
                                    const std::function<void(std::string_view)>& take)>;
std::int64_t cut_of(std::int64_t bytes, double fraction, const ReadText& read);

}  // namespace xsa::data
