// Encodes a text that comes in pieces, cut anywhere, to the ids of the whole, in bounded memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "xsa/text/tokenizer.h"

namespace xsa::text {

class StreamEncoder {
 public:
  /// The tokenizer must outlive it. Each add and finish may use all workers.
  explicit StreamEncoder(const Tokenizer& tokenizer, Parallel parallel = serial())
      : tokenizer_(tokenizer), parallel_(std::move(parallel)) {}

  /// Appends the ids that are sure whatever comes. The rest waits: as a rule some bytes; at worst
  /// (a word of a gigabyte) all of the text since the last border.
  void add(std::string_view piece, std::vector<Token>& ids);
  /// The text ends: appends the ids of the rest. Ready for another text.
  void finish(std::vector<Token>& ids);

 private:
  const Tokenizer& tokenizer_;
  Parallel parallel_;
  std::string waiting_;
  std::size_t next_try_ = 0;  // size of waiting_ from which a border is looked for
};

}  // namespace xsa::text
