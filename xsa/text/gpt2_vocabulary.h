// GPT-2's 50,256 tokens and the merges that make them, read from OpenAI's two files or Hugging
// Face's copies of them. Any other vocabulary is refused: ids are only of use where they are the
// field's.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace xsa::text {

/// An id while pieces are merged; every one of GPT-2's fits.
using Id = std::uint16_t;
inline constexpr Id kNoId = 0xFFFF;

/// The bytes of a short piece of text as two numbers: to compare and to hash.
struct PieceKey {
  static constexpr std::size_t kLongest = 15;
  std::uint64_t low, high;  // bytes 0 to 7; bytes 8 to 14 and, on top, their number

  bool operator==(const PieceKey&) const = default;
  std::uint64_t hash() const {  // its upper bits are the good ones
    return (low * 0x9E3779B97F4A7C15) ^ ((high ^ (low >> 32)) * 0xD6E8FEB86659FD93);
  }
};

class Gpt2Vocabulary {
 public:
  static constexpr std::int64_t kTokens = 50256;  // without end of text
  static constexpr std::size_t kLongestToken = 128;

  /// From a folder with vocab.bpe and encoder.json (OpenAI's names) or merges.txt and vocab.json
  /// (Hugging Face's); the ids follow from the merges, the JSON file may be absent. Throws Error
  /// where the folder or a file is missing or holds anything else than GPT-2's content.
  explicit Gpt2Vocabulary(const std::filesystem::path& folder);

  /// Its bytes.
  std::string_view token(Id id) const {
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1u] - offsets_[id]);
  }
  /// The token of exactly these bytes, or kNoId.
  Id find(std::string_view bytes) const;
  /// What two adjacent tokens merge into, or kNoId. Of several the lowest id goes first.
  Id merge(Id left, Id right) const {
    const std::uint32_t pair = std::uint32_t{left} << 16 | right;
    for (std::size_t slot = pair_slot(pair);; slot = (slot + 1) & (kPairSlots - 1)) {
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
  static constexpr std::size_t kPairSlots = std::size_t{1} << 17, kTokenSlots = kPairSlots;

  static std::size_t pair_slot(std::uint32_t pair) {
    return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15 >> (64 - 17));
  }
  static std::size_t index_of(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  static std::size_t token_slot(std::string_view bytes);
  void add_token(std::string_view bytes);
  void add_merges(std::string_view lines);
  void add_pair(Halves halves, Id merged);
  void note_adjacent_bytes();
  void check_ids(const std::filesystem::path& path) const;

  std::string bytes_;                   // of all tokens, one after another
  std::vector<std::uint32_t> offsets_;  // into bytes_
  std::vector<Id> slots_;               // of ids, by hash of the bytes
  std::vector<Pair> pairs_;             // by hash
  std::vector<Halves> halves_;
  std::vector<Id> byte_tokens_, byte_pairs_;
  std::vector<std::uint64_t> adjacent_;
};

/// Where the vocabulary lies: $XSA_GPT2_VOCABULARY, or the folder that the build found. Throws
/// Error with the remedy where neither is set.
std::filesystem::path gpt2_vocabulary_folder();

}  // namespace xsa::text
