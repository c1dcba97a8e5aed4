#include "xsa/text/gpt2_tokenizer.h"

#include <algorithm>
#include <array>

#include "xsa/base/error.h"
#include "xsa/text/pair_merger.h"

namespace xsa::text {
/// Encodes one text at a time, remembering the ids of short pieces: most words come again.
class Gpt2Tokenizer::Encoder {
 public:
  explicit Encoder(const Gpt2Tokenizer& tokenizer)
      : vocabulary_(tokenizer.vocabulary_), pieces_(tokenizer.pieces_), merger_(vocabulary_) {}

  void encode(std::string_view text, std::vector<Token>& ids) {
    const std::size_t likely = ids.size() + text.size() / 3;
    if (likely > ids.capacity()) ids.reserve(std::max(likely, 2 * ids.capacity()));
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
  /// A short piece of several tokens.
  struct Known {
    PieceKey key;  // its free bits: how many ids
    std::array<Id, 8> ids{};
  };
  static constexpr int kKnownBits = 15;
  static constexpr std::size_t kMost = 8;  // ids of a known piece

  void encode_piece(std::string_view piece) {
    if (piece.size() > PieceKey::kLongest) return encode_long(piece);
    const PieceKey key = key_of(piece);
    make_room(kMost);
    if (const Id id = vocabulary_.find(key); id != kNoId) {
      waiting_[count_++] = id;
      return;
    }
    Known& known = known_[key.hash() >> (64 - kKnownBits)];
    if (!known.key.is_of(key)) return encode_unknown(piece, key, known);
    for (std::size_t i = 0; i < known.ids.size(); ++i) waiting_[count_ + i] = known.ids[i];
    count_ += known.key.high >> 48;
  }

  PieceKey key_of(std::string_view piece) const {
    constexpr std::size_t kRead = 16;
    if (end_ - piece.data() >= std::ptrdiff_t{kRead}) return {piece.data(), piece.size()};
    std::array<char, kRead> padded{};
    std::memcpy(padded.data(), piece.data(), piece.size());
    return {padded.data(), piece.size()};
  }

  void encode_unknown(std::string_view piece, const PieceKey& key, Known& known) {
    merged_.clear();
    merger_.merge(piece, merged_);
    append(merged_);
    if (merged_.size() > known.ids.size()) return;
    std::copy(merged_.begin(), merged_.end(), known.ids.begin());
    known.key = key;
    known.key.high |= std::uint64_t{merged_.size()} << 48;
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
    merger_.merge(part, merged_);
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
  std::vector<Known> known_ = std::vector<Known>(std::size_t{1} << kKnownBits);
  std::vector<Id> merged_;
  std::array<Token, 4096> waiting_;  // the next ids, on their way to *ids_
  std::size_t count_ = 0;
  std::vector<Token>* ids_ = nullptr;
  const char* end_ = nullptr;  // of the text
};

Gpt2Tokenizer::Gpt2Tokenizer(const std::filesystem::path& folder, const std::string& remedy)
    : vocabulary_(folder, remedy) {}
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
