#include "xsa/model/decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "xsa/base/error.h"
#include "xsa/model/parameters.h"
#include "xsa/op/add_layer_norm.h"
#include "xsa/op/attention.h"
#include "xsa/op/rotary_embedding.h"

namespace xsa::model {
namespace {

/// A model's parameters by name; undefined for a name that it lacks.
class Weights {
 public:
  Weights(const Gpt& model, at::ScalarType matrices) : matrices_(matrices) {
    for (const NamedTensor& parameter : model.parameters())
      tensors_[parameter.name] = parameter.tensor.detach();
  }
  at::Tensor vector(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? at::Tensor() : found->second;
  }
  at::Tensor matrix(const std::string& name) const {
    const at::Tensor found = vector(name);
    if (!found.defined() || found.scalar_type() == matrices_) return found;
    return empty_parameter(found.sizes(), matrices_).copy_(found);
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
  at::ScalarType matrices_;
};

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// Each new token's place in its sequence, [N] int64.
at::Tensor positions_of(std::span<const Segment> segments, std::int64_t tokens) {
  const at::Tensor positions = at::empty({tokens}, at::kLong);
  std::int64_t* next = positions.mutable_data_ptr<std::int64_t>();
  for (const Segment& segment : segments)
    for (std::int64_t i = 0; i < segment.length; ++i) *next++ = segment.cache->length() + i;
  return positions;
}

}  // namespace

SequenceCache::SequenceCache(const ModelConfig& config, std::int64_t capacity)
    : sinks_(config.sink_tokens) {
  check_usage(capacity >= 0 && capacity <= config.context,
              "SequenceCache: expected a capacity of 1 to ", config.context,
              " tokens, the context, got ", capacity, "; a model knows no positions beyond it");
  keys_values_ = at::empty({config.layers, 2 * config.key_heads(),
                            sinks_ + (capacity == 0 ? config.context : capacity), config.head_dim},
                           at::kFloat);
}

void SequenceCache::truncate(std::int64_t length) {
  check_usage(length >= 0 && length <= length_, "SequenceCache: expected a length of up to ",
              length_, ", what it holds, got ", length);
  length_ = length;
}

void SequenceCache::copy_from(const SequenceCache& other) {
  check_usage(other.length_ <= capacity(), "SequenceCache: expected at most its capacity of ",
              capacity(), " tokens, got ", other.length_);
  length_ = other.length_;
  const c10::InferenceMode guard;
  const std::int64_t filled = sinks_ + length_;
  if (length_ > 0) keys_values_.narrow(2, 0, filled).copy_(other.keys_values_.narrow(2, 0, filled));
}

Decoder::Decoder(const Gpt& model, at::ScalarType type) : config_(model.config()) {
  check_usage(type == at::kFloat || type == at::kBFloat16,
              "Decoder: expected weights as Float or BFloat16, got ", type);
  const Weights weights(model, type);
  const auto linear = [&](const std::string& name) {
    return Linear{weights.matrix(name + ".weight"), weights.vector(name + ".bias")};
  };
  const auto norm = [&](const std::string& name) {
    return Norm{weights.vector(name + ".weight"), weights.vector(name + ".bias"),
                linear(name + ".gate_down"), linear(name + ".gate_up")};
  };
  const auto sinks = [&](const std::string& attention) {
    const at::Tensor key = weights.vector(attention + "sink_key");
    return key.defined() ? at::cat({key, weights.vector(attention + "sink_value")}) : key;
  };
  embedding_ = weights.matrix(kEmbedding);
  positions_ = weights.matrix(kPositions);
  head_.weight = config_.tied_head ? embedding_ : weights.matrix(kHead);
  if (config_.embedding_norm) embedding_norm_ = norm("transformer.ln_e");
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const std::string block = block_prefix(layer);
    blocks_.push_back({.norm_1 = norm(block + "ln_1"),
                       .norm_2 = norm(block + "ln_2"),
                       .qkv = linear(block + "attn.c_attn"),
                       .attention_out = linear(block + "attn.c_proj"),
                       .up = linear(block + "mlp.c_fc"),
                       .down = linear(block + "mlp.c_proj"),
                       .strength = config_.layer_strength(layer),
                       .sinks = sinks(block + "attn."),
                       .sink_logits = weights.vector(block + "attn.sink_logits"),
                       .head_strength = weights.vector(block + "attn.strength"),
                       .token_strength = linear(block + "attn.c_strength"),
                       .gate = linear(block + "attn.c_gate")});
  }
  final_norm_ = norm("transformer.ln_f");
  if (config_.position == "rope")
    rope_ = rope_tables(config_.context, config_.head_dim, config_.rope_base);
}

at::Tensor Decoder::normalize(const Norm& norm, const at::Tensor& x) const {
  return gated(norm,
               at::layer_norm(x, norm.weight.sizes(), norm.weight, norm.bias, config_.norm_eps));
}

at::Tensor Decoder::gated(const Norm& norm, at::Tensor y) const {
  if (norm.gate_down.weight.defined()) y.mul_(norm.gate_up(at::silu(norm.gate_down(y))).sigmoid_());
  return y;
}

void Decoder::check(const at::Tensor& tokens, std::span<const Segment> segments) const {
  std::int64_t total = 0;
  std::map<const SequenceCache*, bool> kept;  // caches seen so far
  for (const Segment& segment : segments) {
    const SequenceCache& cache = *segment.cache;
    check_usage(segment.length >= 1, "Decoder: expected segments of at least 1 token, got ",
                segment.length);
    check_usage(
        cache.length() + segment.length <= cache.capacity(), "Decoder: expected at most the ",
        cache.capacity(), " tokens of a cache, got ", cache.length(), " + ", segment.length,
        "; cut the sequence, or make the cache longer (up to the context, ", config_.context, ")");
    const auto [seen, is_new] = kept.emplace(&cache, segment.keep);
    check_usage(is_new || (!segment.keep && !seen->second),
                "Decoder: expected segments that share a cache not to keep their tokens");
    total += segment.length;
  }
  check_usage(tokens.dim() == 1 && tokens.scalar_type() == at::kLong && tokens.size(0) == total,
              "Decoder: expected tokens [", total, "] of type Long, as the segments say, got ",
              tokens.sizes(), " of type ", tokens.scalar_type());
  if (total == 0) return;
  const auto [smallest, largest] = at::aminmax(tokens);
  check_usage(
      smallest.item<std::int64_t>() >= 0 && largest.item<std::int64_t>() < config_.vocab_size,
      "Decoder: expected tokens in [0, ", config_.vocab_size, "), the vocabulary, got [",
      smallest.item<std::int64_t>(), ", ", largest.item<std::int64_t>(),
      "]; is this the model's tokenizer?");
}

at::Tensor Decoder::embed(const at::Tensor& tokens, const at::Tensor& positions) const {
  at::Tensor x = at::embedding(embedding_, tokens).to(at::kFloat);
  if (positions_.defined()) x = x + at::embedding(positions_, positions);
  return config_.embedding_norm ? normalize(embedding_norm_, x) : x;
}

// x [N, C] throughout: the residual stream, and what its next norm makes of it.
at::Tensor Decoder::forward(const at::Tensor& tokens, std::span<const Segment> segments,
                            const at::Tensor& rows) const {
  check(tokens, segments);
  const c10::InferenceMode guard;
  if (tokens.size(0) == 0) return at::empty({0, config_.width}, at::kFloat);
  const at::Tensor positions = positions_of(segments, tokens.size(0));
  RopeTables rope;
  if (rope_.cos.defined())
    rope = {rope_.cos.index_select(0, positions), rope_.sin.index_select(0, positions)};

  at::Tensor x = embed(tokens, positions);
  at::Tensor normed = normalize(blocks_.front().norm_1, x);
  const auto add = [&](const at::Tensor& branch, const Norm& norm) {
    std::tie(normed, x) =
        op::add_layer_norm(branch, x, norm.weight, optional(norm.bias), config_.norm_eps);
    normed = gated(norm, normed);
  };
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const Block& block = blocks_[layer];
    at::Tensor attended = attention(normed, layer, rope, segments);
    if (rows.defined() && layer + 1 == blocks_.size()) {
      attended = attended.index_select(0, rows);
      normed = normed.index_select(0, rows);
      x = x.index_select(0, rows);
    }
    if (block.gate.weight.defined()) attended.mul_(block.gate(normed).sigmoid_());
    add(block.attention_out(attended), block.norm_2);
    at::Tensor inner = block.up(normed);
    at::gelu_(inner, gelu_formula(config_));
    add(block.down(inner), layer + 1 < blocks_.size() ? blocks_[layer + 1].norm_1 : final_norm_);
  }
  for (const Segment& segment : segments)
    if (segment.keep) segment.cache->length_ += segment.length;
  return normed;
}

at::Tensor Decoder::attention(const at::Tensor& normed, std::size_t layer, const RopeTables& rope,
                              std::span<const Segment> segments) const {
  const Block& block = blocks_[layer];
  const std::int64_t heads = config_.heads, kv_heads = config_.key_heads();
  const at::Tensor qkv = block.qkv(normed)
                             .view({1, normed.size(0), heads + 2 * kv_heads, config_.head_dim})
                             .transpose(1, 2);  // [1, H + 2 K, N, D]
  if (rope.cos.defined()) {
    const at::Tensor turned = qkv.narrow(1, 0, heads + kv_heads);
    op::rotary_embedding_into(turned, rope.cos, rope.sin, {}, turned);
  }
  op::AttentionOptions options;
  options.is_causal = true;
  options.strength = block.strength;
  if (config_.window > 0) options.window = config_.window;

  options.num_sink_keys = config_.sink_tokens;
  options.sink_logits = optional(block.sink_logits);
  options.learned_strength = optional(block.head_strength);
  at::Tensor strength;  // [N, H], where each token has its own
  if (block.token_strength.weight.defined()) strength = block.token_strength(normed);

  const at::Tensor joined = at::empty({normed.size(0), heads * config_.head_dim}, at::kFloat);
  std::int64_t first = 0;
  for (const Segment& segment : segments) {
    const std::int64_t before = config_.sink_tokens + segment.cache->length();
    const std::int64_t after = before + segment.length;
    const at::Tensor own = qkv.narrow(2, first, segment.length);
    const at::Tensor all =
        segment.cache->keys_values_.select(0, static_cast<std::int64_t>(layer)).unsqueeze(0);
    if (segment.cache->length() == 0 && block.sinks.defined())
      all.narrow(2, 0, config_.sink_tokens).copy_(block.sinks);
    all.narrow(2, before, segment.length).copy_(own.narrow(1, heads, 2 * kv_heads));
    const at::Tensor seen = all.narrow(2, 0, after);  // [1, 2 K, S, D]
    if (strength.defined())
      options.learned_strength = strength.narrow(0, first, segment.length).t().unsqueeze(0);
    const at::Tensor z = op::attention(own.narrow(1, 0, heads), seen.narrow(1, 0, kv_heads),
                                       seen.narrow(1, kv_heads, kv_heads), options)
                             .z;
    joined.narrow(0, first, segment.length).copy_(z.transpose(1, 2).flatten(2).squeeze(0));
    first += segment.length;
  }
  return joined;
}

at::Tensor Decoder::logits(const at::Tensor& hidden, std::int64_t vocabulary) const {
  check_usage(vocabulary >= 0 && vocabulary <= config_.vocab_size,
              "Decoder: expected a vocabulary of up to ", config_.vocab_size, ", got ", vocabulary);
  check_usage(hidden.dim() == 2 && hidden.size(1) == config_.width,
              "Decoder: expected hidden states [M, ", config_.width, "], got ", hidden.sizes());
  const c10::InferenceMode guard;
  if (vocabulary == 0 || vocabulary == config_.vocab_size) return head_(hidden);
  return Linear{head_.weight.narrow(0, 0, vocabulary), {}}(hidden);
}

}  // namespace xsa::model
