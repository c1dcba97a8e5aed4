#include "xsa/data/loader.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

std::int64_t rows_of(const TokenStream& stream, std::int64_t batch_size, std::int64_t context) {
  check_usage(batch_size >= 1, "batch size: expected at least 1, got ", batch_size);
  check_usage(context >= 1, "context: expected at least 1, got ", context);
  return stream.size() < 1 ? 0 : (stream.size() - 1) / context;
}

void read_row(const TokenStream& stream, std::int64_t row, std::span<std::int64_t> inputs,
              std::span<std::int64_t> targets) {
  const std::int64_t begin = row * static_cast<std::int64_t>(inputs.size());
  stream.read(begin, inputs);
  stream.read(begin + 1, targets);
}

void check_room(std::span<const std::int64_t> inputs, std::span<const std::int64_t> targets,
                std::int64_t batch_size, std::int64_t context) {
  const auto expected = static_cast<std::size_t>(batch_size * context);
  check(inputs.size() == expected && targets.size() == expected, "loader: expected room for ",
        batch_size, " rows of ", context, " tokens, got ", inputs.size(), " inputs and ",
        targets.size(), " targets");
}

/// Row order of one epoch. The seed is scrambled before the epoch is added, so that neighbouring
/// seeds do not share orders.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t rows) {
  return Rng(Rng(seed).next() + static_cast<std::uint64_t>(epoch)).permutation(rows);
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
                         std::uint64_t seed)
    : stream_(stream), batch_size_(batch_size), context_(context), seed_(seed) {
  const std::int64_t rows = rows_of(stream, batch_size, context);
  check_usage(rows >= batch_size, "training text: expected at least ", batch_size * context + 1,
              " tokens, one batch of ", batch_size, " rows of ", context, ", got ", stream.size(),
              "; use more text, a smaller batch or a shorter context");
  order_ = epoch_order(seed, 0, rows);
}

std::int64_t TrainLoader::rows_per_epoch() const {
  return static_cast<std::int64_t>(order_.size());
}

void TrainLoader::next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets) {
  check_room(inputs, targets, batch_size_, context_);
  const auto width = static_cast<std::size_t>(context_);
  for (std::size_t at = 0; at < inputs.size(); at += width) {
    if (position_ == rows_per_epoch()) {
      order_ = epoch_order(seed_, ++epoch_, rows_per_epoch());
      position_ = 0;
    }
    read_row(stream_, order_[static_cast<std::size_t>(position_++)], inputs.subspan(at, width),
             targets.subspan(at, width));
  }
}

Json TrainLoader::state() const {
  return {{"stream_tokens", stream_.size()},
          {"batch_size", batch_size_},
          {"context", context_},
          {"seed", seed_},
          {"epoch", epoch_},
          {"position", position_}};
}

void TrainLoader::restore(const Json& state) {
  check(state.is_object(), "data position: expected an object, got ", state.dump());
  check_same(state, "stream_tokens", stream_.size());
  check_same(state, "batch_size", batch_size_);
  check_same(state, "context", context_);
  check_same(state, "seed", seed_);
  const std::int64_t epoch = state_number(state, "epoch");
  const std::int64_t position = state_number(state, "position");
  check(epoch >= 0, "data position: expected an epoch of 0 or more, got ", epoch);
  check(position >= 0 && position <= rows_per_epoch(), "data position: expected a position in [0, ",
        rows_per_epoch(), "], got ", position);
  order_ = epoch_order(seed_, epoch, rows_per_epoch());
  epoch_ = epoch;
  position_ = position;
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

}  // namespace xsa::data
