#include "xsa/text/bpe_tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <queue>
#include <tuple>

#include "xsa/base/error.h"
#include "xsa/text/gpt2_tokenizer.h"

namespace xsa::text {

/// Encodes one text at a time, remembering the ids of short pieces: most words come again.
class BpeTokenizer::Encoder {
 public:
  explicit Encoder(const BpeTokenizer& tokenizer)
      : vocabulary_(tokenizer.vocabulary_), pieces_(tokenizer.pieces_) {}

  void encode(std::string_view text, std::vector<Token>& ids) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = pieces_.end_of_piece(text, begin);
      encode_piece(text.substr(begin, end - begin), ids);
      begin = end;
    }
  }

 private:
  static constexpr std::size_t kLongest = 64;                 // bytes of a piece that is remembered
  static constexpr std::size_t kMost = std::size_t{1} << 16;  // pieces

  /// Two neighbours that may become one: the token at `left` was `made_of`, of this rank.
  struct Candidate {
    std::uint32_t rank;
    std::size_t left;
    std::uint64_t made_of;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };
  struct Part {
    Token token;
    std::size_t before, next;  // places of the neighbours; kNowhere at the ends
  };
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  void encode_piece(std::string_view piece, std::vector<Token>& ids) {
    if (piece.size() > kLongest) return merge(piece, ids);
    std::string key(piece);
    const auto known = known_.find(key);
    if (known != known_.end()) {
      ids.insert(ids.end(), known->second.begin(), known->second.end());
      return;
    }
    const std::size_t first = ids.size();
    merge(piece, ids);
    if (known_.size() >= kMost) known_.clear();
    known_.emplace(std::move(key),
                   std::vector<Token>(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end()));
  }

  /// The pair of the lowest rank is merged first, the leftmost first among equals.
  void merge(std::string_view piece, std::vector<Token>& ids) {
    if (!vocabulary_.whole_words.empty()) {
      const auto whole = vocabulary_.whole_words.find(std::string(piece));
      if (whole != vocabulary_.whole_words.end()) return ids.push_back(whole->second);
    }
    parts_.clear();
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const Token token = vocabulary_.byte_tokens[static_cast<unsigned char>(piece[i])];
      if (token == BpeVocabulary::kNone) refuse(piece[i]);
      parts_.push_back({token, i == 0 ? kNowhere : i - 1, i + 1 < piece.size() ? i + 1 : kNowhere});
    }
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i) consider(i);
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      Part& left = parts_[best.left];
      if (left.token == BpeVocabulary::kNone || left.next == kNowhere) continue;
      Part& right = parts_[left.next];
      if (BpeVocabulary::key(left.token, right.token) != best.made_of) continue;  // merged since
      left.token = vocabulary_.merges.find(best.made_of)->second.token;
      right.token = BpeVocabulary::kNone;
      left.next = right.next;
      if (left.next != kNowhere) {
        parts_[left.next].before = best.left;
        consider(best.left);
      }
      if (left.before != kNowhere) consider(left.before);
    }
    for (std::size_t i = 0; i != kNowhere; i = parts_[i].next) ids.push_back(parts_[i].token);
  }

  void consider(std::size_t left) {
    const Part& part = parts_[left];
    const std::uint64_t pair = BpeVocabulary::key(part.token, parts_[part.next].token);
    const auto found = vocabulary_.merges.find(pair);
    if (found != vocabulary_.merges.end()) candidates_.push({found->second.rank, left, pair});
  }

  [[noreturn]] void refuse(char byte) const {
    char hex[8];
    std::snprintf(hex, sizeof hex, "0x%02x", static_cast<unsigned char>(byte));
    throw Error(cat(vocabulary_.folder.string(), ": the text has the byte ", hex,
                    ", for which this vocabulary has no token; it was made without the whole "
                    "alphabet of bytes"));
  }

  const BpeVocabulary& vocabulary_;
  const Gpt2Pieces& pieces_;
  std::unordered_map<std::string, std::vector<Token>> known_;
  std::vector<Part> parts_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
};

BpeTokenizer::BpeTokenizer(BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
BpeTokenizer::~BpeTokenizer() = default;

std::string BpeTokenizer::name() const {
  const auto path = std::filesystem::absolute(vocabulary_.folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string();
}

void BpeTokenizer::encode(std::string_view text, std::vector<Token>& ids) const {
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

std::size_t BpeTokenizer::safe_prefix(std::string_view text) const {
  return pieces_.last_border(text);
}

std::string BpeTokenizer::decode(const std::vector<Token>& ids) const {
  std::string text;
  for (const Token id : ids) {
    check(id < vocabulary_.tokens.size(), name(), ": expected ids from 0 to ",
          vocabulary_.tokens.size() - 1, ", got ", id,
          "; were these ids made by another tokenizer?");
    text += vocabulary_.tokens[id];
  }
  return text;
}

std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& folder) {
  try {
    return std::make_unique<Gpt2Tokenizer>(folder);
  } catch (const Error&) {  // not GPT-2's own: what else it is, or why it is none, is said below
  }
  return std::make_unique<BpeTokenizer>(BpeVocabulary::read(folder));
}

}  // namespace xsa::text
