#include "xsa/data/document_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "xsa/base/error.h"

namespace xsa::data {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
constexpr std::size_t kBatchPieces = 4096;
constexpr std::size_t kMaxRunBytes = std::size_t{16} << 20;
constexpr std::size_t kPlaceBytes = kBatchBytes;  // of a document's text, for place_of

/// Says of a document that begins with `text` on which side it falls, unless its source has said
/// it.
void choose_side(Piece& piece, std::string_view text, double fraction) {
  if (piece.held_out) return;
  if (fraction > 0) piece.place = place_of(text.substr(0, kPlaceBytes));
  piece.held_out = fraction > 0 && piece.place < fraction;
}

void set_fault(Piece& piece, Fault fault, std::string reason) {
  piece.fault = fault;
  piece.reason = std::move(reason);
}

void refuse_invalid(Piece& piece, std::int64_t bytes) {
  set_fault(piece, Fault::kInvalidUtf8, cat("expected UTF-8, got ", bytes, " bytes that are not"));
}

}  // namespace

bool Batcher::next(DocumentBatch& batch) {
  if (ended_) return false;
  batch = DocumentBatch{};
  batch.text.swap(carried_);
  if (open_) open_->begin = 0;
  limit_ = std::max(kBatchBytes, batch.text.size());
  try {
    fill(batch);
  } catch (...) {
    batch.error = std::current_exception();
    ended_ = true;
    if (open_) batch.text.resize(open_->begin);
  }
  batch.raw_bytes = rows_.raw_bytes();
  return !batch.pieces.empty() || batch.error;
}

void Batcher::fill(DocumentBatch& batch) {
  while (pending_ || next_row(batch)) {
    const std::size_t size = std::min(row_.text.size(), limit_ - batch.text.size());
    batch.text += row_.text.substr(0, size);
    row_.text.remove_prefix(size);
    pending_ = !row_.text.empty();
    if (!pending_ && row_.ends) {
      close(batch);
      if (batch.text.size() >= kBatchBytes || batch.pieces.size() >= kBatchPieces) return;
    } else if (batch.text.size() == limit_ && split(batch)) {
      return;
    }
  }
  ended_ = true;
}

/// Reads on to a row with text to take; rows at fault become pieces at once.
bool Batcher::next_row(DocumentBatch& batch) {
  if (!rows_.next(row_)) return false;
  if (!row_.starts) return true;
  const Input& input = rows_.input(rows_.position().file);
  open_ = Piece{.begin = batch.text.size(),
                .file = rows_.position().file,
                .row = rows_.row(),
                .is_file = input.form.kind == FileKind::kText,
                .check_utf8 = input.check_utf8,
                .held_out = rows_.held_out(),
                .fault = row_.fault,
                .reason = std::move(row_.reason)};
  return true;
}

/// At the limit, within a document. Whether the batch ends here.
bool Batcher::split(DocumentBatch& batch) {
  if (open_->begin > 0) {  // the document opens the next batch
    carried_ = batch.text.substr(open_->begin);
    batch.text.resize(open_->begin);
    return true;
  }
  if (open_->starts) choose_side(*open_, batch.text, fraction_);
  const std::size_t cut = tokenizer_.safe_prefix(batch.text);
  if (cut == 0 && limit_ < kMaxRunBytes) {
    limit_ *= 2;
    return false;
  }
  if (cut == 0) {
    refuse_long(batch);
    return true;
  }
  if (open_->starts) utf8_ = {};
  utf8_.add(std::string_view(batch.text).substr(0, cut));
  Piece piece = *open_;
  piece.end = cut;
  piece.ends = false;
  batch.pieces.push_back(std::move(piece));
  open_->starts = false;
  carried_ = batch.text.substr(cut);
  batch.text.resize(cut);
  return true;
}

void Batcher::refuse_long(DocumentBatch& batch) {
  while (!row_.ends) check(rows_.next(row_), "a source ends within a row");
  pending_ = false;
  batch.text.clear();
  set_fault(*open_, Fault::kTooLong,
            cat("more than ", kMaxRunBytes >> 20, " MiB without a place where '", tokenizer_.name(),
                "' may cut (a space, as a rule)"));
  close(batch);
}

void Batcher::close(DocumentBatch& batch) {
  Piece& piece = *open_;
  piece.end = batch.text.size();
  piece.after = rows_.position();
  if (!piece.starts && piece.check_utf8 && piece.fault == Fault::kNone) {
    utf8_.add(std::string_view(batch.text).substr(piece.begin));
    if (utf8_.invalid_bytes() > 0) refuse_invalid(piece, utf8_.invalid_bytes());
  }
  batch.pieces.push_back(std::move(piece));
  open_.reset();
}

void encode(DocumentBatch& batch, const text::Tokenizer& tokenizer, double validation_fraction) {
  constexpr auto kMaxId = text::Token{std::numeric_limits<std::uint16_t>::max()};
  std::vector<text::Token> ids;
  for (Piece& piece : batch.pieces) {
    const auto text = std::string_view(batch.text).substr(piece.begin, piece.end - piece.begin);
    const bool whole = piece.starts && piece.ends;
    if (piece.fault == Fault::kNone && whole && piece.check_utf8) {
      text::Utf8Counter utf8;
      utf8.add(text);
      if (utf8.invalid_bytes() > 0) refuse_invalid(piece, utf8.invalid_bytes());
    }
    if (piece.fault == Fault::kNone && piece.is_file && text.find('\0') != text.npos)
      set_fault(piece, Fault::kBinary, "expected text, got binary data: a NUL byte");
    if (piece.starts) choose_side(piece, text, validation_fraction);
    ids.clear();
    if (piece.fault == Fault::kNone && !(whole && text.empty())) {
      if (piece.starts) ids.push_back(tokenizer.end_of_text());
      tokenizer.encode(text, ids);
    }
    for (const text::Token id : ids) {
      check(id <= kMaxId && id < tokenizer.vocabulary_size(), "tokenizer '", tokenizer.name(),
            "': expected ids below ",
            std::min<std::int64_t>(kMaxId + 1, tokenizer.vocabulary_size()), ", got ", id,
            "; shards hold no others");
      batch.ids.push_back(static_cast<std::uint16_t>(id));
    }
    piece.ids_end = batch.ids.size();
  }
}

}  // namespace xsa::data
