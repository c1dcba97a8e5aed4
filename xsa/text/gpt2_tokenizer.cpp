#include "xsa/text/gpt2_tokenizer.h"

#include <algorithm>
#include <array>

#include "xsa/base/error.h"
#include "xsa/text/pair_merger.h"

namespace xsa::text {
namespace {

/// The key of `size` <= PieceKey::kLongest bytes; sixteen are read where `end` allows.
PieceKey key_of(const char* piece, std::size_t size, const char* end) {
  constexpr std::size_t kWidth = 16;
  std::array<char, kWidth> copy{};
  if (static_cast<std::size_t>(end - piece) < kWidth) {
    std::memcpy(copy.data(), piece, size);
    piece = copy.data();
  }
  PieceKey key;
  std::memcpy(&key.low, piece, 8);
  std::memcpy(&key.high, piece + 8, 8);
  if (size < 8) {
    key.low &= (std::uint64_t{1} << 8 * size) - 1;
    key.high = 0;
  } else {
    key.high &= (std::uint64_t{1} << 8 * (size - 8)) - 1;
  }
  key.high |= std::uint64_t{size} << 56;
  return key;
}

}  // namespace

/// Encodes one text at a time, remembering the ids of short pieces: most words come again.
class Gpt2Tokenizer::Encoder {
 public:
  explicit Encoder(const Gpt2Tokenizer& tokenizer)
      : vocabulary_(tokenizer.vocabulary_), pieces_(tokenizer.pieces_), merger_(vocabulary_) {}

  void encode(std::string_view text, std::vector<Token>& ids) {
    ids_ = &ids;
    end_ = text.data() + text.size();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = pieces_.end_of_piece(text, begin);
      encode_piece(text.substr(begin, end - begin));
      begin = end;
    }
    flush();
  }

 private:
  static constexpr std::size_t kRemembered = 7;  // ids of one piece
  struct Entry {
    PieceKey key{0, 0};  // no piece's
    std::array<Id, kRemembered> ids{};
    std::uint16_t count = 0;
  };
  static constexpr int kEntryBits = 13;

  void encode_piece(std::string_view piece) {
    if (piece.size() > PieceKey::kLongest) return encode_long(piece);
    const PieceKey key = key_of(piece.data(), piece.size(), end_);
    Entry& entry = entries_[key.hash() >> (64 - kEntryBits)];
    if (entry.key == key) {
      make_room(kRemembered);
      for (std::size_t i = 0; i < kRemembered; ++i) waiting_[count_ + i] = entry.ids[i];
      count_ += entry.count;
    } else {
      merged_.clear();
      encode_new(piece);
      append(merged_);
      if (merged_.size() > kRemembered) return;
      entry.key = key;
      entry.count = static_cast<std::uint16_t>(merged_.size());
      std::copy(merged_.begin(), merged_.end(), entry.ids.begin());
    }
  }

  /// Into merged_.
  void encode_new(std::string_view piece) {
    if (piece.size() <= Gpt2Vocabulary::kLongestToken)
      if (const Id id = vocabulary_.find(piece); id != kNoId) return merged_.push_back(id);
    merger_.merge(piece, merged_);
  }

  /// What no token spans falls apart into pieces that may be known: most characters of Chinese.
  void encode_long(std::string_view piece) {
    std::size_t begin = 0;
    for (std::size_t i = 1; i < piece.size(); ++i) {
      if (vocabulary_.adjacent(piece[i - 1], piece[i])) continue;
      encode_part(piece.substr(begin, i - begin));
      begin = i;
    }
    encode_part(piece.substr(begin));
  }

  void encode_part(std::string_view part) {
    if (part.size() <= PieceKey::kLongest) return encode_piece(part);
    merged_.clear();
    encode_new(part);
    append(merged_);
  }

  void append(const std::vector<Id>& ids) {
    for (std::size_t done = 0; done < ids.size();) {
      make_room(1);
      const std::size_t now = std::min(ids.size() - done, waiting_.size() - count_);
      std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(done), now, waiting_.begin() + count_);
      done += now;
      count_ += now;
    }
  }

  void make_room(std::size_t size) {
    if (count_ + size > waiting_.size()) flush();
  }

  void flush() {
    ids_->insert(ids_->end(), waiting_.begin(), waiting_.begin() + count_);
    count_ = 0;
  }

  const Gpt2Vocabulary& vocabulary_;
  const Gpt2Pieces& pieces_;
  PairMerger merger_;
  std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << kEntryBits);
  std::vector<Id> merged_;
  std::array<Token, 4096> waiting_;  // the next ids, on their way to *ids_
  std::size_t count_ = 0;
  std::vector<Token>* ids_ = nullptr;
  const char* end_ = nullptr;  // of the text
};

Gpt2Tokenizer::Gpt2Tokenizer(const std::filesystem::path& folder) : vocabulary_(folder) {}
Gpt2Tokenizer::~Gpt2Tokenizer() = default;

void Gpt2Tokenizer::encode(std::string_view text, std::vector<Token>& ids) const {
  std::unique_ptr<Encoder> encoder;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      encoder = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!encoder) encoder = std::make_unique<Encoder>(*this);
  encoder->encode(text, ids);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(encoder));
}

std::size_t Gpt2Tokenizer::safe_prefix(std::string_view text) const {
  return pieces_.last_border(text);
}

std::string Gpt2Tokenizer::decode(const std::vector<Token>& ids) const {
  std::string text;
  text.reserve(4 * ids.size());
  for (const Token id : ids) {
    check(id <= kEndOfText, "gpt2 tokenizer: expected ids from 0 to ", kEndOfText, ", got ", id,
          "; were these ids made by another tokenizer?");
    text += id == kEndOfText ? "<|endoftext|>" : vocabulary_.token(static_cast<Id>(id));
  }
  return text;
}

}  // namespace xsa::text
