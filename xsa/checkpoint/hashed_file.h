// A file on its way to the disk: hashed while it is written, synced before it counts as done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "xsa/base/hash.h"

namespace xsa::checkpoint {

class HashedFile {
 public:
  /// Creates or empties the file. This and what follows throws Error with path and reason, e.g. a
  /// full disk.
  explicit HashedFile(const std::filesystem::path& path);
  ~HashedFile();
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  struct Written {
    std::int64_t bytes = 0;
    std::string sha256;
  };
  /// Syncs and closes. Nothing may be written after.
  Written finish();

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::int64_t bytes_ = 0;
  Sha256 hash_;
};

}  // namespace xsa::checkpoint
