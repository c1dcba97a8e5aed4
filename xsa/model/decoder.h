// The model step by step, with the keys and values of earlier tokens kept: what generation and
// scoring run on. No padding: the linear layers take the new tokens of all sequences as rows of one
// matrix, attention runs sequence by sequence over its own cache. No gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "xsa/model/config.h"
#include "xsa/model/gpt.h"
#include "xsa/model/linear.h"

namespace xsa::model {

/// Keys and values of one sequence, all layers, behind those of the layers' sink tokens. A copy
/// shares the memory.
class SequenceCache {
 public:
  /// Room for `capacity` tokens, at most the context; 0: the context. Memory is touched as it
  /// fills.
  explicit SequenceCache(const ModelConfig& config, std::int64_t capacity = 0);

  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return keys_values_.size(2) - sinks_; }
  /// Forgets all but the first `length` tokens. Throws UsageError for more than there are.
  void truncate(std::int64_t length);
  /// Becomes as long as `other`, with its content. Throws UsageError where there is no room.
  void copy_from(const SequenceCache& other);

 private:
  friend class Decoder;
  // [L, 2 K, n + capacity, D] fp32: a layer's key heads, then its value heads. The decoder writes
  // the n sinks with a sequence's first tokens.
  at::Tensor keys_values_;
  std::int64_t sinks_;
  std::int64_t length_ = 0;
};

/// One piece of a forward pass: `length` >= 1 new tokens that follow the cache's own.
struct Segment {
  std::int64_t length;
  SequenceCache* cache;
  /// Whether the cache holds the new tokens afterwards. Where it does not, its length is as before,
  /// and several segments of one pass may continue the same prefix.
  bool keep = true;
};

class Decoder {
 public:
  /// Shares the model's weights; those of its matrices are copied where `type` is not theirs:
  /// kFloat or kBFloat16. Sums are fp32 in either.
  explicit Decoder(const Gpt& model, at::ScalarType type = at::kFloat);

  const ModelConfig& config() const { return config_; }
  /// tokens [N] int64: the segments' tokens one after another -> final hidden states [N, C], fp32,
  /// as Gpt::hidden has them. Throws UsageError for tokens outside the vocabulary, a cache that is
  /// too short, or one that two segments of a pass share and one of them keeps.
  /// `rows` [M] int64, where given: places in `tokens`; the result is of these alone, [M, C], and
  /// the last layer computes no other behind its attention.
  at::Tensor forward(const at::Tensor& tokens, std::span<const Segment> segments,
                     const at::Tensor& rows = {}) const;
  /// hidden [M, C] -> logits [M, V] fp32, of the first `vocabulary` rows of the output layer; 0:
  /// all.
  at::Tensor logits(const at::Tensor& hidden, std::int64_t vocabulary = 0) const;

 private:
  struct Norm {
    at::Tensor weight, bias;
    Linear gate_down, gate_up;  // weights undefined where there are none
  };
  struct Block {
    Norm norm_1, norm_2;
    Linear qkv, attention_out, up, down;
    double strength;
    // Undefined where there are none.
    at::Tensor sinks;  // [2 K, n, D], as a cache has them
    at::Tensor sink_logits, head_strength;
    Linear token_strength, gate;
  };

  void check(const at::Tensor& tokens, std::span<const Segment> segments) const;
  at::Tensor embed(const at::Tensor& tokens, const at::Tensor& positions) const;
  at::Tensor attention(const at::Tensor& normed, std::size_t layer, const RopeTables& rope,
                       std::span<const Segment> segments) const;
  at::Tensor normalize(const Norm& norm, const at::Tensor& x) const;
  at::Tensor gated(const Norm& norm, at::Tensor y) const;

  ModelConfig config_;
  at::Tensor embedding_, positions_;
  Linear head_;
  Norm embedding_norm_, final_norm_;
  std::vector<Block> blocks_;
  RopeTables rope_;
};

}  // namespace xsa::model
