// Fig. 2 as a program: one transformer block, attention and feed-forward layer with their norms,
// with XSA and without, in time and in memory. The block is Gpt's own: a model of one layer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xsa/base/json.h"

namespace xsa::bench {

struct BlockConfig {
  std::vector<std::int64_t> lengths = {512, 1024, 2048};
  std::int64_t batch = 1;
  std::string type = "float32";  // or bfloat16: weights and activations
  std::int64_t width = 768, heads = 12, head_dim = 64;
  std::int64_t rounds = 15;
  double round_s = 0.2;      // a round takes about that long, or two calls of each
  std::int64_t threads = 0;  // 0: all cores
};

/// How many rounds of measurement there will be, and after each of them, how many there were.
struct BlockProgress {
  std::function<void(std::int64_t done, std::int64_t total, const std::string& what)> update;
};

/// For each length, forward alone and forward with backward: a round runs standard, exclusive,
/// exclusive, standard, so that a machine that slows down or speeds up favours neither; the ratio
/// is of a round. Throws UsageError for sizes that make no block, Error for a result that is not
/// finite, Interrupted. The result is docs/performance.md's JSON.
Json measure_block(const BlockConfig& config, const BlockProgress& progress = {});

/// For the terminal: a row and a bar for each measurement.
std::string block_table(const Json& result);

}  // namespace xsa::bench
