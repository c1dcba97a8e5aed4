#include "xsa/data/loader.h"

#include <algorithm>

#include "xsa/base/error.h"

namespace xsa::data {
namespace {

std::int64_t rows_of(const TokenStream& stream, std::int64_t batch_size, std::int64_t context) {
  check_usage(batch_size >= 1, "batch size: expected at least 1, got ", batch_size);
  check_usage(context >= 1, "context: expected at least 1, got ", context);
  return stream.size() < 1 ? 0 : (stream.size() - 1) / context;
}

/// Row `row`'s tokens as inputs and, one later, as targets.
void read_row(const TokenStream& stream, std::int64_t row, std::span<std::int64_t> inputs,
              std::span<std::int64_t> targets) {
  std::vector<std::int64_t> tokens(inputs.size() + 1);
  stream.read(row * static_cast<std::int64_t>(inputs.size()), tokens);
  std::copy(tokens.begin(), tokens.end() - 1, inputs.begin());
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
}

void check_room(std::span<const std::int64_t> inputs, std::span<const std::int64_t> targets,
                std::int64_t batch_size, std::int64_t context) {
  const auto expected = static_cast<std::size_t>(batch_size * context);
  check(inputs.size() == expected && targets.size() == expected, "loader: expected room for ",
        batch_size, " rows of ", context, " tokens, got ", inputs.size(), " inputs and ",
        targets.size(), " targets");
}

std::int64_t state_number(const Json& state, const char* name) {
  const auto found = state.find(name);
  check(found != state.end() && found->is_number_integer(), "data position: expected an integer '",
        name, "', got ", found == state.end() ? "nothing" : found->dump());
  return found->get<std::int64_t>();
}

template <class Number>
void check_same(const Json& state, const char* name, Number expected) {
  const auto saved = static_cast<Number>(state_number(state, name));
  check(saved == expected, "data position: it was saved with ", name, " ", saved,
        ", but this run has ", expected,
        "; resume with the recipe and data that the run began with, or start a new run");
}

}  // namespace

TrainLoader::TrainLoader(const TokenStream& stream, std::int64_t batch_size, std::int64_t context,
                         std::uint64_t seed, Rank rank)
    : stream_(stream),
      batch_size_(batch_size),
      context_(context),
      rows_(rows_of(stream, batch_size, context)),
      seed_(seed),
      rank_(rank) {
  check_usage(rank.ranks >= 1 && rank.rank >= 0 && rank.rank < rank.ranks,
              "ranks: expected a rank below their number, got rank ", rank.rank, " of ",
              rank.ranks);
  const std::int64_t needed = batch_size * rank.ranks;
  check_usage(rows_ >= needed, "training text: expected at least ", needed * context + 1,
              " tokens, one batch of ", needed, " rows of ", context, ", got ", stream.size(),
              "; use more text, a smaller batch or a shorter context");
}

std::vector<std::int64_t> TrainLoader::take(std::int64_t count) {
  std::vector<std::int64_t> rows;
  for (; count > 0; --count) {
    if (!order_) order_.emplace(seed_, epoch_, rows_);
    rows.push_back((*order_)[position_]);
    skip(1);
  }
  return rows;
}

void TrainLoader::skip(std::int64_t count) {
  position_ += count;
  if (position_ < rows_) return;
  position_ -= rows_;  // at most one border: a batch of all ranks is no longer than an epoch
  ++epoch_;
  order_.reset();
}

void TrainLoader::next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets) {
  check_room(inputs, targets, batch_size_, context_);
  skip(rank_.rank * batch_size_);
  const std::vector<std::int64_t> rows = take(batch_size_);
  skip((rank_.ranks - rank_.rank - 1) * batch_size_);
  for (const std::int64_t row : rows) stream_.will_need(row * context_, context_ + 1);
  const auto width = static_cast<std::size_t>(context_);
  for (std::size_t i = 0; i < rows.size(); ++i)
    read_row(stream_, rows[i], inputs.subspan(i * width, width), targets.subspan(i * width, width));
}

Json TrainLoader::state() const {
  return {{"stream_tokens", stream_.size()},
          {"context", context_},
          {"seed", seed_},
          {"epoch", epoch_},
          {"position", position_}};
}

void TrainLoader::restore(const Json& state) {
  check(state.is_object(), "data position: expected an object, got ", state.dump());
  check_same(state, "stream_tokens", stream_.size());
  check_same(state, "context", context_);
  check_same(state, "seed", seed_);
  const std::int64_t epoch = state_number(state, "epoch");
  const std::int64_t position = state_number(state, "position");
  check(epoch >= 0, "data position: expected an epoch of 0 or more, got ", epoch);
  check(position >= 0 && position <= rows_, "data position: expected a position in [0, ", rows_,
        "], got ", position);
  epoch_ = epoch;
  position_ = position;
  order_.reset();
  skip(0);  // the end of an epoch is the begin of the next
}

SequentialLoader::SequentialLoader(const TokenStream& stream, std::int64_t batch_size,
                                   std::int64_t context, std::int64_t max_rows)
    : stream_(stream),
      batch_size_(batch_size),
      context_(context),
      all_rows_(rows_of(stream, batch_size, context)),
      rows_(max_rows > 0 ? std::min(max_rows, all_rows_) : all_rows_) {
  check_usage(max_rows >= 0, "rows: expected 0 (all) or more, got ", max_rows);
  check_usage(all_rows_ >= 1, "text to evaluate on: expected at least ", context + 1,
              " tokens, one row of ", context, ", got ", stream.size(),
              "; use more text, a larger validation_fraction or a shorter context");
}

std::int64_t SequentialLoader::next(std::span<std::int64_t> inputs,
                                    std::span<std::int64_t> targets) {
  check_room(inputs, targets, batch_size_, context_);
  const auto width = static_cast<std::size_t>(context_);
  const std::int64_t count = std::min(batch_size_, rows_ - next_);
  for (std::size_t at = 0; at < static_cast<std::size_t>(count) * width; at += width)
    read_row(stream_, next_++ * all_rows_ / rows_, inputs.subspan(at, width),
             targets.subspan(at, width));
  return count;
}

std::vector<std::int32_t> document_borders(std::span<const std::int64_t> inputs,
                                           std::int64_t context, text::Token end_of_text) {
  std::vector<std::int32_t> borders;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] == end_of_text || i % static_cast<std::size_t>(context) == 0)
      borders.push_back(static_cast<std::int32_t>(i));
  borders.push_back(static_cast<std::int32_t>(inputs.size()));
  return borders;
}

}  // namespace xsa::data
