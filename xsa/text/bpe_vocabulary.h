// A byte-level BPE vocabulary of any content, as Hugging Face's tokenizers write it:
// tokenizer.json, or vocab.json with merges.txt, and the files beside them that name its special
// tokens.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "xsa/text/tokenizer.h"

namespace xsa::text {

struct BpeVocabulary {
  static constexpr Token kNone = 0xFFFFFFFF;

  /// What two adjacent tokens become. Of several merges that of the lowest rank goes first.
  struct Merge {
    std::uint32_t rank;
    Token token;
  };

  std::filesystem::path folder;
  std::string sha256;                    // of the files that were read, one after another
  std::vector<std::string> tokens;       // by id: what it decodes to; "" where no token has it
  std::array<Token, 256> byte_tokens{};  // kNone for a byte that the vocabulary lacks
  std::unordered_map<std::uint64_t, Merge> merges;  // by key()
  std::vector<SpecialToken> special;                // "added tokens", in the order of their ids
  Token end_of_text = kNone, begin_of_text = kNone;
  /// Words that are a token as they are, whatever the merges say; empty where merges alone count.
  std::unordered_map<std::string, Token> whole_words;

  static std::uint64_t key(Token left, Token right) { return std::uint64_t{left} << 32 | right; }

  /// Reads tokenizer.json where there is one, else vocab.json and merges.txt (encoder.json and
  /// vocab.bpe). End of text is the eos_token of tokenizer_config.json or special_tokens_map.json,
  /// else config.json's eos_token_id, else "<|endoftext|>"; begin of text is the bos_token of the
  /// former two, else end of text. Throws Error naming file and setting for anything that is not
  /// GPT-2's kind of tokenizer (another normalizer, pre-tokenizer or model), for ids and merges
  /// that do not fit together, and where nothing ends a text.
  static BpeVocabulary read(const std::filesystem::path& folder);
};

}  // namespace xsa::text
