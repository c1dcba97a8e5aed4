// A GPT's shape. The defaults are the demo's; the paper's three changes to NanoGPT are position =
// "rope", embedding_norm and head_dim apart from the width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xsa/base/fields.h"

namespace xsa::model {

struct ModelConfig {
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;  // 0: as heads
  std::int64_t head_dim = 32;
  std::int64_t context = 256;
  std::int64_t vocab_size = 0;  // 0: the tokenizer's
  std::string attention = "exclusive";
  std::string exclusive_layers = "all";
  double strength = 1.0;
  std::string learned_strength = "none";
  std::int64_t sink_tokens = 0;
  bool sink_logits = false;
  bool output_gate = false;
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::int64_t gated_norm = 0;  // 0: none
  std::string feed_forward = "gelu";
  std::int64_t feed_forward_width = 0;  // 0: 4 width
  std::string position = "rope";
  double rope_base = 10000;
  std::int64_t window = 0;  // 0: none
  bool embedding_norm = true;
  bool bias = false;
  bool tied_head = true;
  double init_std = 0.02;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("layers", self.layers, "transformer blocks", at_least(1));
    field("width", self.width, "width of the residual stream", at_least(1));
    field("heads", self.heads, "query heads", at_least(1));
    field("kv_heads", self.kv_heads, "key/value heads, a divisor of heads; 0: as heads",
          at_least(0));
    field("head_dim", self.head_dim, "dimension of a head, apart from the width; even with RoPE",
          between(1, 256));
    field("context", self.context, "tokens of a training sequence", at_least(2));
    field("vocab_size", self.vocab_size, "rows of the token embedding; 0: the tokenizer's",
          between(0, 1 << 24));
    field("attention", self.attention, "kind of attention", one_of({"standard", "exclusive"}));
    field("exclusive_layers", self.exclusive_layers,
          "which layers are exclusive where attention = exclusive: 'all', 'first N', 'last N', or "
          "numbers as '0,3'");
    field("strength", self.strength,
          "share of the own value's direction that is removed: 1 is the paper", between(-100, 100));
    field("learned_strength", self.learned_strength,
          "exclusive layers learn their strength, from the value of strength on: one of each head, "
          "or of each token and head",
          one_of({"none", "head", "token"}));
    field("sink_tokens", self.sink_tokens,
          "learned keys and values in front of each layer's, seen whatever window or document",
          between(0, 1024));
    field("sink_logits", self.sink_logits,
          "a learned logit of each head in its softmax, with no value behind it");
    field("output_gate", self.output_gate,
          "each layer's attention output times sigmoid(x W), x the layer's normalised input");
    field("norm", self.norm, "kind of norm", one_of({"layernorm"}));
    field("norm_eps", self.norm_eps, "added to the variance in norms", above(0));
    field("gated_norm", self.gated_norm,
          "rank of the gate behind the norms: y sigmoid(W_up silu(W_down y)); 0: none",
          at_least(0));
    field("feed_forward", self.feed_forward,
          "kind of feed-forward layer; gelu_tanh: GELU's tanh formula, as GPT-2",
          one_of({"gelu", "gelu_tanh"}));
    field("feed_forward_width", self.feed_forward_width, "its inner width; 0: 4 width",
          at_least(0));
    field("position", self.position, "how positions enter", one_of({"rope", "learned", "none"}));
    field("rope_base", self.rope_base, "base of RoPE's wavelengths", above(1));
    field("window", self.window,
          "a token sees itself and the window - 1 tokens before it; 0: all before it", at_least(0));
    field("embedding_norm", self.embedding_norm, "a norm right after the token embedding");
    field("bias", self.bias, "biases in linear layers and norms");
    field("tied_head", self.tied_head, "the output layer shares the embedding's weights");
    field("init_std", self.init_std, "standard deviation of the initial weights (NanoGPT's 0.02)",
          above(0));
  }

  std::int64_t key_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  std::int64_t inner_width() const {
    return feed_forward_width == 0 ? 4 * width : feed_forward_width;
  }
  /// Whether a layer's attention is exclusive. Throws UsageError for a layer that does not exist.
  bool is_exclusive(std::int64_t layer) const;
  /// Strength of a layer's exclusion, where it is learned the initial one: 0 where it is standard.
  double layer_strength(std::int64_t layer) const;
  /// Throws UsageError for fields that do not fit together. vocab_size must be resolved.
  void validate() const;
};

}  // namespace xsa::model
