#include "xsa/data/tokenize_files.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/signals.h"
#include "xsa/data/byte_stream.h"
#include "xsa/data/document_batch.h"

namespace xsa::data {
namespace {

constexpr std::size_t kExamples = 20;
constexpr std::size_t kInFlightBytes = std::size_t{32} << 20;  // of text

/// Encodes batches, any of them first, and gives them back in their order.
class Encoders {
 public:
  Encoders(const text::Tokenizer& tokenizer, double fraction, std::int64_t workers) {
    for (std::int64_t i = 0; i < workers; ++i)
      team_.emplace_back([this, &tokenizer, fraction](const std::stop_token& stop) {
        work(tokenizer, fraction, stop);
      });
  }

  void put(DocumentBatch&& batch) {
    const std::lock_guard lock(mutex_);
    bytes_ += batch.text.size();
    batches_.push_back(std::make_unique<Entry>(std::move(batch)));
    waiting_.push_back(batches_.back().get());
    changed_.notify_all();
  }
  std::size_t size() const { return batches_.size(); }
  std::size_t bytes() const { return bytes_; }
  /// Whether take() would not wait.
  bool ready() {
    const std::lock_guard lock(mutex_);
    return !batches_.empty() && batches_.front()->done;
  }
  /// The oldest one, once it is encoded.
  DocumentBatch take() {
    std::unique_lock lock(mutex_);
    Entry& first = *batches_.front();
    changed_.wait(lock, [&] { return first.done; });
    DocumentBatch batch = std::move(first.batch);
    batches_.pop_front();
    bytes_ -= batch.text.size();
    return batch;
  }

 private:
  struct Entry {
    explicit Entry(DocumentBatch&& taken) : batch(std::move(taken)) {}
    DocumentBatch batch;
    bool done = false;
  };

  void work(const text::Tokenizer& tokenizer, double fraction, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
      Entry& entry = *waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        encode(entry.batch, tokenizer, fraction);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) {
        entry.batch.error = error;
        entry.batch.pieces.clear();
      }
      entry.done = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::unique_ptr<Entry>> batches_;  // in their order
  std::deque<Entry*> waiting_;                  // not yet begun
  std::size_t bytes_ = 0;
  std::vector<std::jthread> team_;  // last: it must end first
};

/// Takes encoded batches in their order.
class Writer {
 public:
  Writer(FileRows& rows, SplitWriter& train, SplitWriter& validation, Progressed& state,
         const TokenizeOptions& options)
      : rows_(rows), train_(train), validation_(validation), state_(state), options_(options) {}

  void take(const DocumentBatch& batch) {
    std::size_t ids_begin = 0;
    for (const Piece& piece : batch.pieces) {
      write(piece, std::span(batch.ids).subspan(ids_begin, piece.ids_end - ids_begin));
      ids_begin = piece.ids_end;
      uncommitted_ += static_cast<std::int64_t>(piece.end - piece.begin);
    }
    show(batch);
    if (batch.error) std::rethrow_exception(batch.error);
    if (uncommitted_ >= options_.commit_bytes && !within_) commit();
  }

  /// What is complete is kept, and on the disk.
  void commit() {
    if (within_) take_back();
    state_.train = train_.state();
    state_.validation = validation_.state();
    uncommitted_ = 0;
    if (!options_.commit) return;
    train_.sync();
    validation_.sync();
    options_.commit(state_);
  }

  /// After an error, which is worth more than that of a second attempt to write.
  void try_to_commit() noexcept {
    try {
      commit();
    } catch (const std::exception&) {
    }
  }

 private:
  void write(const Piece& piece, std::span<const std::uint16_t> ids) {
    if (piece.starts) begin(piece);
    if (piece.fault != Fault::kNone && !dropped_) refuse(piece);
    if (!dropped_ && !ids.empty()) {
      (held_out_ ? validation_ : train_).add(ids);
      bytes_ += static_cast<std::int64_t>(piece.end - piece.begin);
    }
    if (!piece.ends) return;
    within_ = false;
    ++state_.counts.rows;
    if (!dropped_ && bytes_ == 0) ++state_.counts.empty_documents;
    if (!dropped_ && bytes_ > 0) end_document();
    state_.position = piece.after;
  }

  void begin(const Piece& piece) {
    before_train_ = train_.state();
    before_validation_ = validation_.state();
    within_ = true;
    dropped_ = false;
    held_out_ = *piece.held_out;
    place_ = piece.place;
    bytes_ = 0;
  }

  void end_document() {
    SplitWriter& side = held_out_ ? validation_ : train_;
    const SplitState& before = held_out_ ? before_validation_ : before_train_;
    side.end_document(bytes_);
    Nearest& nearest = held_out_ ? state_.nearest_held_out : state_.nearest_trained;
    if (place_ >= 0 && (nearest.place < 0 || is_nearer(place_, nearest.place, held_out_)))
      nearest = {place_, before.tokens, side.state().tokens, bytes_};
  }

  void take_back() {
    (held_out_ ? validation_ : train_).restore(held_out_ ? before_validation_ : before_train_);
    within_ = false;
  }

  void refuse(const Piece& piece) {
    const SourceFile& file = rows_.input(piece.file).file;
    const std::string path = file.path == kStandardInput ? file.name : file.path.string();
    const std::string place = piece.is_file ? path : cat(path, ": row ", piece.row);
    check(options_.skip_bad_rows, place, ": ", piece.reason,
          "; repair it, or leave such rows out and have them counted with --on-bad-row skip");
    if (bytes_ > 0) take_back();
    within_ = true;
    dropped_ = true;
    ++state_.counts.bad[static_cast<std::size_t>(piece.fault)];
    if (state_.counts.examples.size() < kExamples)
      state_.counts.examples.push_back(
          {{"path", file.name},
           {"row", piece.row},
           {"fault", kFaultNames[static_cast<std::size_t>(piece.fault)]},
           {"reason", piece.reason}});
  }

  void show(const DocumentBatch& batch) {
    text_bytes_ += static_cast<std::int64_t>(batch.text.size());
    if (options_.bar == nullptr) return;
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.1f MB/s of text",
                  static_cast<double>(text_bytes_) / 1e6 / options_.bar->elapsed_s());
    options_.bar->update(options_.bar_begin + batch.raw_bytes, rate);
  }

  FileRows& rows_;
  SplitWriter &train_, &validation_;
  Progressed& state_;
  const TokenizeOptions& options_;
  SplitState before_train_, before_validation_;  // the document in hand
  bool within_ = false, dropped_ = false, held_out_ = false;
  double place_ = -1;       // of the document in hand
  std::int64_t bytes_ = 0;  // of the document in hand
  std::int64_t uncommitted_ = 0, text_bytes_ = 0;
};

}  // namespace

std::int64_t Counts::bad_rows() const {
  std::int64_t sum = 0;
  for (const std::int64_t count : bad) sum += count;
  return sum;
}

Json to_json(const Counts& counts) {
  Json bad = Json::object();
  for (std::size_t i = 1; i < kFaultNames.size(); ++i) bad[kFaultNames[i]] = counts.bad[i];
  return {{"rows", counts.rows},
          {"empty_documents", counts.empty_documents},
          {"bad_rows", bad},
          {"bad_row_examples", counts.examples}};
}

Json to_json(const Nearest& nearest) {
  return {{"place", nearest.place},
          {"begin", nearest.begin},
          {"end", nearest.end},
          {"bytes", nearest.bytes}};
}

Nearest nearest_of(const Json& json) {
  return {json.at("place").get<double>(), count_in(json, "begin"), count_in(json, "end"),
          count_in(json, "bytes")};
}

Counts counts_of(const Json& json) {
  Counts counts;
  counts.rows = count_in(json, "rows");
  counts.empty_documents = count_in(json, "empty_documents");
  for (std::size_t i = 1; i < kFaultNames.size(); ++i)
    counts.bad[i] = count_in(json.at("bad_rows"), kFaultNames[i]);
  counts.examples = json.at("bad_row_examples");
  return counts;
}

void tokenize_files(FileRows& rows, const text::Tokenizer& tokenizer, SplitWriter& train,
                    SplitWriter& validation, Progressed& state, const TokenizeOptions& options) {
  Batcher batcher(rows, tokenizer, options.validation_fraction);
  Writer writer(rows, train, validation, state, options);
  Encoders encoders(tokenizer, options.validation_fraction, options.workers);
  const auto most = static_cast<std::size_t>(4 + 4 * options.workers);
  try {
    bool more = true;
    while (more || encoders.size() > 0) {
      const bool full = encoders.size() >= most || encoders.bytes() >= kInFlightBytes;
      more = more && stop_signal() == 0;
      if (more && !full && !encoders.ready()) {
        DocumentBatch batch;
        more = batcher.next(batch);
        if (!batch.pieces.empty() || batch.error) encoders.put(std::move(batch));
      } else if (encoders.size() > 0) {
        writer.take(encoders.take());
      }
    }
    if (const int signal = stop_signal()) throw Interrupted(signal, options.stopped);
  } catch (...) {
    writer.try_to_commit();
    if (const int signal = stop_signal()) throw Interrupted(signal, options.stopped);
    throw;
  }
  writer.commit();
}

}  // namespace xsa::data
