// A text or token shards, opened: of a text, shards are made once, and later runs find them by
// their manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "xsa/base/fields.h"
#include "xsa/data/shard.h"
#include "xsa/text/tokenizer.h"

namespace xsa::data {

struct DataConfig {
  std::string source = "shakespeare";
  std::string tokenizer = "byte";
  double validation_fraction = 0.1;
  std::string cache = "data";
  std::string documents = "stream";
  std::int64_t read_ahead = 4;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field(
        "source", self.source,
        "'shakespeare' (42 works, whole works held out), a text file, a folder of text files; or a "
        "folder or quoted pattern of token shards (xsa prepare, nanoGPT, llm.c)",
        {}, Effect::kNone);  // its tokens count, by their hash
    field("tokenizer", self.tokenizer,
          "how text becomes tokens: byte, gpt2, or a folder with a vocabulary");
    field("validation_fraction", self.validation_fraction,
          "share of the documents, by hash, held out for validation; of a single file its end",
          between(0.001, 0.5));
    field("cache", self.cache, "folder for the token shards that are made from the source", {},
          Effect::kNone);
    field("documents", self.documents,
          "stream: a sequence is seen whole, as the paper's; packed: attention stays within a "
          "document",
          one_of({"stream", "packed"}));
    field("read_ahead", self.read_ahead,
          "batches read before they are needed; 0: read when they are", between(0, 1024),
          Effect::kNone);
  }
};

struct Split {
  TokenStream tokens;
  /// Of the text behind the tokens: bits per byte = loss / ln 2 * tokens / bytes.
  std::int64_t bytes = 0;
  /// The token that opens a document, where attention is to stay within documents.
  std::optional<text::Token> document_opener{};
};

struct Dataset {
  Split train, validation;
  std::unique_ptr<text::Tokenizer> tokenizer;
  Json manifest;  // sources, sizes, hashes, tokenizer, counts

  /// Of the shards' own hashes, both splits, as they were verified: equal where the tokens are,
  /// wherever they came from.
  std::string sha256() const;
};

/// Opens the shards of `config` and verifies them. Those of a text are made first (with a progress
/// bar) where they are missing or their source has changed. Says on standard error what lies in the
/// source and is not read. Throws Error for a source that is missing, empty,
/// unreadable or binary, naming the file and the remedy.
Dataset open_dataset(const DataConfig& config);

}  // namespace xsa::data
