// Text files read in pieces of bounded memory, and told from binary ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "xsa/data/source.h"
#include "xsa/text/utf8.h"

namespace xsa::data {

/// Calls `take` with the bytes [begin, end) of the file, at most a MiB at a time. Throws Error if
/// the file cannot be read or has become shorter.
void for_each_piece(const SourceFile& file, std::int64_t begin, std::int64_t end,
                    const std::function<void(std::string_view piece)>& take);

/// Tells text from binary data, which has a NUL byte anywhere, or more than a tenth of the bytes
/// not UTF-8 (text in Latin-1 passes). Throws Error for binary data, naming `name`.
class TextCheck {
 public:
  explicit TextCheck(std::string name) : name_(std::move(name)) {}
  void add(std::string_view piece);
  void finish() const;

 private:
  std::string name_;
  std::int64_t bytes_ = 0;
  text::Utf8Counter utf8_;
};

/// The whole file's SHA-256. Throws as TextCheck. `progress` gets the size of each piece.
std::string check_and_hash(const SourceFile& file,
                           const std::function<void(std::int64_t bytes)>& progress);

}  // namespace xsa::data
