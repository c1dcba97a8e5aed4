// What a file is that is not what was expected, told by its first bytes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace xsa::data {

/// What stands for a file of a git-LFS repository that was not fetched.
bool is_lfs_pointer(std::string_view head);
inline constexpr std::string_view kLfsPointer =
    "a git-LFS pointer, which stands for a file that was not fetched; fetch it with git lfs pull";
/// Throws Error for such a file; leaves other mistakes to whoever opens it.
void refuse_lfs_pointer(const std::filesystem::path& path);

/// "UTF-16, ..." or "UTF-32, ..." with the remedy: told by the mark that opens it or, of UTF-16, by
/// the NUL beside each of its letters. "" for anything else.
std::string foreign_encoding(std::string_view head);

}  // namespace xsa::data
