// A MiB of documents, on their way from the readers through an encoder to the shards.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "xsa/data/file_rows.h"
#include "xsa/text/tokenizer.h"
#include "xsa/text/utf8.h"

namespace xsa::data {

/// A document in a batch, or a piece of one that is longer than a batch.
struct Piece {
  std::size_t begin = 0, end = 0;  // of the batch's text
  std::int64_t file = 0, row = 0;
  bool starts = true, ends = true;
  bool is_file = false;  // a text file: NUL bytes tell binary data
  bool check_utf8 = true;
  std::optional<bool> held_out;  // where the piece starts
  double place = -1;             // that it was held out by; -1: by another rule, or nobody asked
  Fault fault = Fault::kNone;
  std::string reason{};
  std::size_t ids_end = 0;  // its tokens end here, those of the piece before where they begin
  Position after{};         // where it ends
};

struct DocumentBatch {
  std::string text;
  std::vector<Piece> pieces;
  std::vector<std::uint16_t> ids;
  std::int64_t raw_bytes = 0;  // of the files, read so far
  std::exception_ptr error;    // behind the pieces
};

/// Cuts rows into batches, the same way whatever reads them.
class Batcher {
 public:
  Batcher(FileRows& rows, const text::Tokenizer& tokenizer, double validation_fraction)
      : rows_(rows), tokenizer_(tokenizer), fraction_(validation_fraction) {}
  /// False at the end. What the readers throw ends the batches as DocumentBatch::error.
  bool next(DocumentBatch& batch);

 private:
  void fill(DocumentBatch& batch);
  bool next_row(DocumentBatch& batch);
  bool split(DocumentBatch& batch);
  void close(DocumentBatch& batch);
  void refuse_long(DocumentBatch& batch);

  FileRows& rows_;
  const text::Tokenizer& tokenizer_;
  double fraction_;
  Row row_;               // its text: what is not in a batch yet
  bool pending_ = false;  // whether row_ is still to be taken
  bool ended_ = false;
  std::optional<Piece> open_;  // what row_ belongs to, from its begin in the batch on
  std::string carried_;        // text of open_, for the next batch
  std::size_t limit_ = 0;      // bytes of this batch
  text::Utf8Counter utf8_;     // over the pieces of a document that is longer than a batch
};

/// Fills in ids, ids_end, sides and faults. Throws Error for an id that does not fit.
void encode(DocumentBatch& batch, const text::Tokenizer& tokenizer, double validation_fraction);

}  // namespace xsa::data
