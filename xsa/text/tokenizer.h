// Text to token ids and back. GPT-2's BPE comes as a second Tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace xsa::text {

using Token = std::uint32_t;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Its name in recipes and manifests: "byte".
  virtual std::string name() const = 0;
  /// Ids are in [0, vocabulary_size()).
  virtual std::int64_t vocabulary_size() const = 0;
  /// Placed between documents by the data preparation; never produced by encode.
  virtual Token end_of_text() const = 0;
  /// Appends the ids of `text`, any bytes. Splitting a text into pieces may change the ids unless
  /// the pieces are whole documents.
  virtual void encode(std::string_view text, std::vector<Token>& ids) const = 0;
  /// Exact inverse for ids that encode produced; end_of_text() decodes to "". Throws Error for an
  /// id beyond the vocabulary.
  virtual std::string decode(const std::vector<Token>& ids) const = 0;
};

/// By name, as recipes say it. Throws UsageError for an unknown one, with the nearest match.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);
std::vector<std::string> tokenizer_names();

}  // namespace xsa::text
