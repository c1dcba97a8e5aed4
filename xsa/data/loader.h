// Batches for training and for validation, from a token stream; the same for every machine and
// thread count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/data/row_order.h"
#include "xsa/data/shard.h"

namespace xsa::data {

/// Which of several processes that train together asks.
struct Rank {
  std::int64_t rank = 0, ranks = 1;
};

/// Cuts the stream into rows of context + 1 tokens (a row starts on the last token of the one
/// before, so that every token is predicted once an epoch) and hands them out in an order shuffled
/// by seed, a new permutation each epoch. Batches run on into the next epoch; fewer than `context`
/// tokens at the stream's end make no row. Of each ranks x batch_size rows, rank r takes the r-th
/// batch_size.
class TrainLoader {
 public:
  /// `stream` must outlive the loader. Throws UsageError if it holds fewer rows than one batch of
  /// all ranks.
  TrainLoader(const TokenStream& stream, std::int64_t batch_size, std::int64_t context,
              std::uint64_t seed, Rank rank = {});
  /// Fills inputs and targets, each [batch_size, context]; targets are inputs one token later.
  void next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets);
  std::int64_t rows_per_epoch() const { return rows_; }
  std::int64_t batch_tokens() const { return batch_size_ * context_; }

  /// Epoch and rows taken in it by all ranks: the same on each, and of no batch size or number of
  /// ranks. So restore continues exactly, also with another split, at the next row. It throws Error
  /// if the state is of another stream, seed or context.
  Json state() const;
  void restore(const Json& state);

 private:
  /// The next `count` rows.
  std::vector<std::int64_t> take(std::int64_t count);
  void skip(std::int64_t count);

  const TokenStream& stream_;
  std::int64_t batch_size_, context_, rows_, epoch_ = 0, position_ = 0;
  std::uint64_t seed_;
  Rank rank_;
  std::optional<RowOrder> order_;  // of epoch_, once a row of it is taken
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

/// Where documents begin in rows of `context` inputs that lie one after another, and the end of
/// all: at each row's begin and at each end-of-text token, which opens a document. As the
/// operator's cu_seqlens.
std::vector<std::int32_t> document_borders(std::span<const std::int64_t> inputs,
                                           std::int64_t context, text::Token end_of_text);

}  // namespace xsa::data
