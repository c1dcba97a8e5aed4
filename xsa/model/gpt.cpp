#include "xsa/model/gpt.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <tuple>

#include "xsa/base/error.h"
#include "xsa/base/huge_pages.h"
#include "xsa/base/rng.h"
#include "xsa/model/linear_cross_entropy.h"
#include "xsa/model/parameters.h"
#include "xsa/op/add_layer_norm.h"
#include "xsa/op/attention.h"

namespace xsa::model {
namespace {

/// A random stream of each parameter's own: what is added to a model, or left out, changes no other
/// parameter's bits.
at::Generator stream(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return at::make_generator<at::CPUGeneratorImpl>(Rng(seed ^ hash).next());
}

at::Tensor initial_value(const ParameterSpec& spec, std::uint64_t seed) {
  at::Tensor value = empty_parameter(spec.sizes, at::kFloat).fill_(spec.mean);
  if (spec.std > 0) value.normal_(spec.mean, spec.std, stream(seed, spec.name));
  return value.requires_grad_();
}

}  // namespace

at::Tensor empty_parameter(at::IntArrayRef sizes, at::ScalarType type) {
  const at::Tensor value = at::empty(sizes, type);
  prefer_huge_pages(value.const_data_ptr(), value.nbytes());
  return value;
}

std::string_view gelu_formula(const ModelConfig& config) {
  return config.feed_forward == "gelu_tanh" ? "tanh" : "none";
}

at::Tensor Gpt::Affine::operator()(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

at::Tensor Gpt::Norm::operator()(const at::Tensor& x) const {
  return gated(at::layer_norm(x, weight.sizes(), weight, bias, eps));
}

std::pair<at::Tensor, at::Tensor> Gpt::Norm::after_adding(const at::Tensor& branch,
                                                          const at::Tensor& x) const {
  const auto given_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  auto [y, sum] = op::add_layer_norm(branch, x, weight, given_bias, eps);
  return {gated(y), std::move(sum)};
}

// GatedNorm (arXiv 2601.22966): y sigmoid(W_up silu(W_down y)).
at::Tensor Gpt::Norm::gated(const at::Tensor& y) const {
  if (!gate_down.defined()) return y;
  return y * at::linear(at::silu(at::linear(y, gate_down)), gate_up).sigmoid();
}

at::Tensor Gpt::Block::learned_strength(const at::Tensor& normed) const {
  return token_strength.weight.defined() ? token_strength(normed).transpose(1, 2) : head_strength;
}

namespace {

/// MKL's vector functions choose their code at their first call. When two threads make that call at
/// once, one may get other code, and other last bits (seen in 5 to 15 % of fresh processes): one
/// thread calls first.
void settle_vector_math() {
  const at::Tensor x = at::zeros({1});
  at::exp(x);
  at::expm1(x);
}

}  // namespace

Gpt::Gpt(const ModelConfig& config, std::uint64_t seed) : Gpt(config, std::optional(seed)) {}

Gpt::Gpt(const ModelConfig& config, const std::optional<std::uint64_t>& seed) : config_(config) {
  config_.validate();
  settle_vector_math();
  for (const ParameterSpec& spec : parameter_specs(config_))
    parameters_.push_back({spec.name,
                           seed ? initial_value(spec, *seed)
                                : empty_parameter(spec.sizes, at::kFloat).requires_grad_(),
                           spec.is_matrix()});

  embedding_ = find(kEmbedding);
  head_ = config_.tied_head ? embedding_ : find(kHead);
  positions_ = find(kPositions);
  if (config_.embedding_norm) embedding_norm_ = norm("transformer.ln_e");
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const std::string block = block_prefix(layer);
    blocks_.push_back({.norm_1 = norm(block + "ln_1"),
                       .norm_2 = norm(block + "ln_2"),
                       .qkv = affine(block + "attn.c_attn"),
                       .attention_out = affine(block + "attn.c_proj"),
                       .up = affine(block + "mlp.c_fc"),
                       .down = affine(block + "mlp.c_proj"),
                       .strength = config_.layer_strength(layer),
                       .sink_key = find(block + "attn.sink_key"),
                       .sink_value = find(block + "attn.sink_value"),
                       .sink_logits = find(block + "attn.sink_logits"),
                       .head_strength = find(block + "attn.strength"),
                       .token_strength = affine(block + "attn.c_strength"),
                       .gate = affine(block + "attn.c_gate")});
  }
  final_norm_ = norm("transformer.ln_f");
  if (config_.position == "rope")
    rope_ = rope_tables(config_.context, config_.head_dim, config_.rope_base);
}

at::Tensor Gpt::find(const std::string& name) const {
  for (const NamedTensor& parameter : parameters_)
    if (parameter.name == name) return parameter.tensor;
  return {};
}

Gpt::Affine Gpt::affine(const std::string& name) const {
  return {find(name + ".weight"), find(name + ".bias")};
}

Gpt::Norm Gpt::norm(const std::string& name) const {
  return {.weight = find(name + ".weight"),
          .bias = find(name + ".bias"),
          .gate_down = find(name + ".gate_down.weight"),
          .gate_up = find(name + ".gate_up.weight"),
          .eps = config_.norm_eps};
}

void Gpt::check_tokens(const at::Tensor& tokens) const {
  check_usage(
      tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.size(1) <= config_.context,
      "Gpt: expected tokens [B, T] of type Long with T up to the context, ", config_.context,
      ", got ", tokens.sizes(), " of type ", tokens.scalar_type(),
      "; cut longer sequences, or raise model.context");
  if (tokens.numel() == 0) return;
  const auto [smallest, largest] = at::aminmax(tokens);
  check_usage(
      smallest.item<std::int64_t>() >= 0 && largest.item<std::int64_t>() < config_.vocab_size,
      "Gpt: expected tokens in [0, ", config_.vocab_size, "), the vocabulary, got [",
      smallest.item<std::int64_t>(), ", ", largest.item<std::int64_t>(),
      "]; was the data made with another tokenizer?");
}

namespace {

/// What the operator cannot know: that no document reaches over the end of a row.
void check_documents(const at::Tensor& cu_seqlens, const at::Tensor& tokens) {
  if (!cu_seqlens.defined()) return;
  check_usage(cu_seqlens.dim() == 1 && cu_seqlens.scalar_type() == at::kInt &&
                  cu_seqlens.is_contiguous() && cu_seqlens.numel() >= 2,
              "Gpt: expected contiguous cu_seqlens [documents + 1] of type Int, got ",
              cu_seqlens.sizes(), " of type ", cu_seqlens.scalar_type());
  const auto* const begin = cu_seqlens.const_data_ptr<std::int32_t>();
  const auto* const end = begin + cu_seqlens.numel();
  check_usage(std::is_sorted(begin, end), "Gpt: expected cu_seqlens in rising order");
  for (std::int64_t row = 0; row <= tokens.size(0); ++row)
    check_usage(std::binary_search(begin, end, row * tokens.size(1)),
                "Gpt: expected every row border in cu_seqlens, got none at ", row * tokens.size(1),
                "; a document ends with its row");
}

/// The place of each of [B, T] tokens in its document, [B T].
at::Tensor places(const at::Tensor& cu_seqlens, const at::Tensor& tokens) {
  const at::Tensor ends = cu_seqlens.to(at::kLong), begins = ends.slice(0, 0, -1);
  const at::Tensor own_begin = at::repeat_interleave(begins, ends.slice(0, 1) - begins);
  return at::arange(tokens.numel(), at::kLong) - own_begin;
}

/// x [B, K, T, D] with sinks [K, n, D] in front of each sequence: [B, K, n + T, D].
at::Tensor behind(const at::Tensor& sinks, const at::Tensor& x) {
  return at::cat({sinks.unsqueeze(0).expand({x.size(0), -1, -1, -1}), x}, 2);
}

}  // namespace

// x [B, T, C] throughout: the residual stream, and what its next norm makes of it.
at::Tensor Gpt::hidden(const at::Tensor& tokens, const AttentionObserver& observe,
                       const at::Tensor& cu_seqlens) const {
  check_tokens(tokens);
  check_documents(cu_seqlens, tokens);
  at::Tensor x = at::embedding(embedding_, tokens);
  RopeTables rope = rope_;
  if (cu_seqlens.defined()) {  // positions begin anew with each document
    const at::Tensor place = places(cu_seqlens, tokens);
    if (positions_.defined()) x = x + at::embedding(positions_, place.view_as(tokens));
    if (rope.cos.defined())
      rope = {rope_.cos.index_select(0, place), rope_.sin.index_select(0, place)};
  } else if (positions_.defined()) {
    x = x + positions_.narrow(0, 0, tokens.size(1));
  }
  if (config_.embedding_norm) x = embedding_norm_(x);
  at::Tensor normed = blocks_.front().norm_1(x);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const Norm& next = layer + 1 < blocks_.size() ? blocks_[layer + 1].norm_1 : final_norm_;
    const at::Tensor attended =
        attention(normed, static_cast<std::int64_t>(layer), rope, cu_seqlens, observe);
    std::tie(normed, x) = blocks_[layer].norm_2.after_adding(attended, x);
    std::tie(normed, x) = next.after_adding(feed_forward(normed, blocks_[layer]), x);
  }
  return normed;
}

at::Tensor Gpt::attention(const at::Tensor& normed, std::int64_t layer, const RopeTables& rope,
                          const at::Tensor& cu_seqlens, const AttentionObserver& observe) const {
  const Block& block = blocks_[static_cast<std::size_t>(layer)];
  op::AttentionOptions options;
  options.is_causal = true;
  options.strength = block.strength;
  if (config_.window > 0) options.window = config_.window;
  at::Tensor x = normed;
  if (cu_seqlens.defined()) {
    options.cu_seqlens = cu_seqlens;
    x = normed.flatten(0, 1).unsqueeze(0);  // [1, B T, C]
  }
  auto [q, k, v] = split_heads(block.qkv(x), config_.heads, config_.key_heads(), rope);
  const at::Tensor learned_strength = block.learned_strength(x);
  if (learned_strength.defined()) options.learned_strength = learned_strength;
  if (block.sink_logits.defined()) options.sink_logits = block.sink_logits;
  if (block.sink_key.defined()) {
    options.num_sink_keys = config_.sink_tokens;
    k = behind(block.sink_key, k), v = behind(block.sink_value, v);
  }
  const auto [z, lse, c] = op::attention(q, k, v, options);
  if (observe)
    observe({layer, block.strength, q, k, v, z, lse, c, config_.sink_tokens, block.sink_logits,
             learned_strength});
  at::Tensor joined = z.transpose(1, 2).reshape({normed.size(0), normed.size(1), -1});
  if (block.gate.weight.defined()) joined = joined * block.gate(normed).sigmoid();
  return block.attention_out(joined);  // [B, T, H D] -> [B, T, C]
}

at::Tensor Gpt::feed_forward(const at::Tensor& normed, const Block& block) const {
  return block.down(at::gelu(block.up(normed), gelu_formula(config_)));
}

at::Tensor Gpt::logits(const at::Tensor& tokens) const { return at::linear(hidden(tokens), head_); }

at::Tensor Gpt::loss_sum(const at::Tensor& tokens, const at::Tensor& targets, std::int64_t chunk,
                         const at::Tensor& cu_seqlens) const {
  check_usage(targets.sizes() == tokens.sizes(), "Gpt: expected a target for each of tokens ",
              tokens.sizes(), ", got targets ", targets.sizes());
  const at::Tensor states = hidden(tokens, {}, cu_seqlens).flatten(0, 1);
  return linear_cross_entropy_sum(states, head_, targets.flatten(), chunk);
}

}  // namespace xsa::model
