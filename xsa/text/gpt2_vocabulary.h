// GPT-2's 50,256 tokens and the merges that make them, read from OpenAI's two files or one of
// Hugging Face's forms of them. Any other vocabulary is refused: ids are only of use where they are
// the field's.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xsa::text {

/// An id while pieces are merged; every one of GPT-2's fits.
using Id = std::uint16_t;
inline constexpr Id kNoId = 0xFFFF;

/// The bytes of a short piece of text as two numbers: to compare and to hash. The upper 16 bits of
/// `high` are free for what a table knows about the piece.
struct PieceKey {
  static constexpr std::size_t kLongest = 13;
  static constexpr std::uint64_t kBytes = (std::uint64_t{1} << 48) - 1;

  std::uint64_t low = 0, high = 0;  // bytes 0 to 7; bytes 8 to 12 and, above them, their number

  /// Of `size` >= 1 bytes; sixteen must be readable.
  PieceKey(const char* piece, std::size_t size) {
    std::memcpy(&low, piece, sizeof low);
    std::memcpy(&high, piece + sizeof low, sizeof high);
    low &= kMasks[size].low;
    high = (high & kMasks[size].high) | std::uint64_t{size} << 40;
  }
  PieceKey() = default;  // no piece's

  bool is_of(const PieceKey& piece) const {
    return low == piece.low && (high & kBytes) == piece.high;
  }
  /// Its upper bits are the good ones.
  std::uint64_t hash() const {
    return (low * 0x9E3779B97F4A7C15) ^ ((high ^ low >> 32) * 0xD6E8FEB86659FD93);
  }

 private:
  struct Mask {
    std::uint64_t low, high;
  };
  static constexpr auto kMasks = [] {
    static_assert(std::endian::native == std::endian::little, "byte 0 is the lowest");
    std::array<Mask, kLongest + 1> masks{};
    for (std::size_t size = 0; size <= kLongest; ++size) {
      const std::size_t in_high = size < 8 ? 0 : size - 8;
      masks[size] = {size < 8 ? (std::uint64_t{1} << 8 * size) - 1 : ~std::uint64_t{0},
                     (std::uint64_t{1} << 8 * in_high) - 1};
    }
    return masks;
  }();
};

/// How to get the vocabulary that xsa itself needs, for error texts.
extern const char* const kVocabularyRemedy;

class Gpt2Vocabulary {
 public:
  static constexpr std::int64_t kTokens = 50256;  // without end of text
  static constexpr std::size_t kLongestToken = 128;

  /// From a folder with vocab.bpe and encoder.json (OpenAI's names), merges.txt and vocab.json
  /// (Hugging Face's), or else tokenizer.json (both in one); the ids follow from the merges, the
  /// file of ids may be absent. Throws Error where the folder or a file is missing or holds
  /// anything else than GPT-2's content, ending with `remedy`.
  explicit Gpt2Vocabulary(const std::filesystem::path& folder,
                          const std::string& remedy = kVocabularyRemedy);

  /// Its bytes.
  std::string_view token(Id id) const {
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1u] - offsets_[id]);
  }
  std::size_t size_of(Id id) const { return sizes_[id]; }
  /// The token of exactly these bytes, or kNoId.
  Id find(std::string_view bytes) const;
  Id find(const PieceKey& key) const {
    for (std::size_t slot = key.hash() >> (64 - kSlotBits);; slot = (slot + 1) & kSlotMask) {
      const PieceKey& found = short_tokens_[slot];
      if (found.is_of(key)) return static_cast<Id>(found.high >> 48);
      if (found.high == 0) return kNoId;
    }
  }
  /// What two adjacent tokens merge into, or kNoId. Of several the lowest id goes first.
  Id merge(Id left, Id right) const {
    const std::uint32_t pair = std::uint32_t{left} << 16 | right;
    for (std::size_t slot = pair_slot(pair);; slot = (slot + 1) & kSlotMask) {
      if (pairs_[slot].pair == pair) return pairs_[slot].merged;
      if (pairs_[slot].merged == kNoId) return kNoId;
    }
  }
  Id byte_token(char byte) const { return byte_tokens_[static_cast<unsigned char>(byte)]; }
  Id merge_bytes(char left, char right) const { return byte_pairs_[index_of(left, right)]; }
  /// Whether some token holds these two bytes in a row. Where not, no merge ever crosses.
  bool adjacent(char left, char right) const {
    const std::size_t index = index_of(left, right);
    return (adjacent_[index / 64] >> (index % 64) & 1) != 0;
  }
  /// The two ids that `id` (256 or more) is made of.
  struct Halves {
    Id left, right;
  };
  Halves halves(Id id) const { return halves_[id]; }

 private:
  struct Pair {
    std::uint32_t pair = 0;
    Id merged = kNoId;  // where the slot is free
  };
  static constexpr int kSlotBits = 17;  // of each table: less than half full
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits, kSlotMask = kSlots - 1;

  static std::size_t pair_slot(std::uint32_t pair) {
    return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15 >> (64 - kSlotBits));
  }
  static std::size_t index_of(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  void add_token(std::string_view bytes);
  void add_merges(std::string_view lines);
  void add_pair(Halves halves, Id merged);
  void note_adjacent_bytes();

  std::string bytes_;                   // of all tokens, one after another
  std::vector<std::uint32_t> offsets_;  // into bytes_
  std::vector<std::uint8_t> sizes_;
  std::vector<PieceKey> short_tokens_;  // by hash, with their ids
  std::unordered_map<std::string, Id> long_tokens_;
  std::vector<Pair> pairs_;  // by hash
  std::vector<Halves> halves_;
  std::vector<Id> byte_tokens_, byte_pairs_;
  std::vector<std::uint64_t> adjacent_;
};

/// Whether the folder has a file that Gpt2Vocabulary reads merges from, GPT-2's or others.
bool has_merges(const std::filesystem::path& folder);

/// Where the vocabulary lies: $XSA_GPT2_VOCABULARY, or the folder that the build found. Throws
/// Error with the remedy where neither is set.
std::filesystem::path gpt2_vocabulary_folder();

}  // namespace xsa::text
