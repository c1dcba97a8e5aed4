#include "xsa/data/file_head.h"

#include <algorithm>
#include <fstream>

#include "xsa/base/error.h"

namespace xsa::data {
namespace {

constexpr std::string_view kLfsBegin = "version https://git-lfs.github.com/spec/";
constexpr std::size_t kLetters = 64;  // bytes that are looked at for UTF-16 without a mark

/// Whether the bytes at `first`, `first` + 2, ... are NUL and no others are.
bool alternates(std::string_view bytes, std::size_t first) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if ((bytes[i] == '\0') != (i % 2 == first)) return false;
  return true;
}

bool is_utf16(std::string_view head) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return true;
  const std::string_view letters = head.substr(0, std::min(head.size() / 2 * 2, kLetters));
  return letters.size() >= 4 && (alternates(letters, 0) || alternates(letters, 1));
}

}  // namespace

bool is_lfs_pointer(std::string_view head) { return head.starts_with(kLfsBegin); }

void refuse_lfs_pointer(const std::filesystem::path& path) {
  std::string head(kLfsBegin.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  check(!is_lfs_pointer(head), path.string(), ": expected the file itself, got ", kLfsPointer);
}

std::string foreign_encoding(std::string_view head) {
  const bool is_utf32 = head.starts_with(std::string_view("\xff\xfe\0\0", 4)) ||
                        head.starts_with(std::string_view("\0\0\xfe\xff", 4));
  if (!is_utf32 && !is_utf16(head)) return "";
  const char* const name = is_utf32 ? "UTF-32" : "UTF-16";
  return cat(name, "; convert it with `iconv -f ", name, " -t UTF-8 OLD > NEW`");
}

}  // namespace xsa::data
