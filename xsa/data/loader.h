// Batches for training and for validation, from a token stream; the same for every machine and
// thread count.
#pragma once

#include <cstdint>
#include <span>

#include "xsa/base/json.h"
#include "xsa/data/shard.h"

namespace xsa::data {

/// Cuts the stream into rows of context + 1 tokens (a row starts on the last token of the one
/// before, so that every token is predicted once an epoch) and hands them out in an order shuffled
/// by seed, a new permutation each epoch. Batches run on into the next epoch; fewer than `context`
/// tokens at the stream's end make no row.
class TrainLoader {
 public:
  /// `stream` must outlive the loader. Throws UsageError if it holds fewer than one batch of rows.
  TrainLoader(const TokenStream& stream, std::int64_t batch_size, std::int64_t context,
              std::uint64_t seed);
  /// Fills inputs and targets, each [batch_size, context]; targets are inputs one token later.
  void next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets);
  std::int64_t rows_per_epoch() const;

  /// Epoch and position; restore continues at exactly the next batch. Throws Error if the state is
  /// of another stream, seed or shape.
  Json state() const;
  void restore(const Json& state);

 private:
  const TokenStream& stream_;
  std::int64_t batch_size_, context_, epoch_ = 0, position_ = 0;
  std::uint64_t seed_;
  std::vector<std::int64_t> order_;
};

/// `max_rows` rows (all, if 0), spread evenly over the stream, in their order; rows as above. The
/// last batch may be smaller.
class SequentialLoader {
 public:
  /// `stream` must outlive the loader. Throws UsageError if it holds no row.
  SequentialLoader(const TokenStream& stream, std::int64_t batch_size, std::int64_t context,
                   std::int64_t max_rows);
  std::int64_t rows() const { return rows_; }
  /// Fills up to batch_size rows and returns how many; 0 at the end.
  std::int64_t next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets);

 private:
  const TokenStream& stream_;
  std::int64_t batch_size_, context_, all_rows_, rows_, next_ = 0;
};

}  // namespace xsa::data
