#include "xsa/text/stream_encoder.h"

namespace xsa::text {

void StreamEncoder::add(std::string_view piece, std::vector<Token>& ids) {
  waiting_ += piece;
  if (waiting_.size() < next_try_) return;
  const std::size_t size = tokenizer_.safe_prefix(waiting_);
  // Where there is no border, looking again after each piece would take quadratic time.
  next_try_ = size == 0 ? 2 * waiting_.size() : 0;
  encode(tokenizer_, std::string_view(waiting_).substr(0, size), ids, parallel_);
  waiting_.erase(0, size);
}

void StreamEncoder::finish(std::vector<Token>& ids) {
  encode(tokenizer_, waiting_, ids, parallel_);
  waiting_.clear();
  next_try_ = 0;
}

}  // namespace xsa::text
