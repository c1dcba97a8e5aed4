// A second implementation of the model for the tests: plain ATen and autograd, in the type of its
// parameters (double), with attention as a T x T softmax and the paper's two lines.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>

#include "xsa/model/gpt.h"

namespace xsa::model::eager {

using Parameters = std::map<std::string, at::Tensor>;

/// x [B, H, T, D], turned pair by pair as complex numbers.
inline at::Tensor rope(const at::Tensor& x, double base) {
  const std::int64_t half = x.size(3) / 2;
  const at::Tensor frequency =
      at::pow(base, at::arange(half, at::kDouble) * (-2.0 / static_cast<double>(x.size(3))));
  const at::Tensor angle = at::arange(x.size(2), at::kDouble).unsqueeze(1) * frequency;
  const at::Tensor pair = at::complex(x.narrow(3, 0, half), x.narrow(3, half, half));
  const at::Tensor turned = pair * at::polar(at::ones_like(angle), angle);
  return at::cat({at::real(turned), at::imag(turned)}, 3);
}

struct Eager {
  const ModelConfig& config;
  const Parameters& parameters;

  at::Tensor get(const std::string& name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? at::zeros({}, at::kDouble) : found->second;
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::matmul(x, get(name + ".weight").t()) + get(name + ".bias");
  }
  static at::Tensor sigmoid(const at::Tensor& x) { return 1 / (1 + (-x).exp()); }
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor variance = (centred * centred).mean(-1, true);
    const at::Tensor y =
        centred / (variance + config.norm_eps).sqrt() * get(name + ".weight") + get(name + ".bias");
    if (!parameters.contains(name + ".gate_up.weight")) return y;
    const at::Tensor inner = linear(name + ".gate_down", y);
    return y * sigmoid(linear(name + ".gate_up", inner * sigmoid(inner)));
  }
  /// [1 or B, H, 1 or T, 1], or a scalar.
  at::Tensor strength(std::int64_t layer, const std::string& attention, const at::Tensor& x) const {
    if (!config.is_exclusive(layer)) return at::zeros({}, at::kDouble);
    if (config.learned_strength == "head") return get(attention + "strength").view({1, -1, 1, 1});
    if (config.learned_strength == "token")
      return linear(attention + "c_strength", x).transpose(1, 2).unsqueeze(3);
    return at::full({}, config.strength, at::kDouble);
  }
  /// x [B, H, T, D] behind the sinks of its heads.
  at::Tensor behind_sinks(const std::string& name, const at::Tensor& x) const {
    if (config.sink_tokens == 0) return x;
    const at::Tensor sinks =
        get(name).repeat_interleave(config.heads / config.key_heads(), 0).unsqueeze(0);
    return at::cat({sinks.repeat({x.size(0), 1, 1, 1}), x}, 2);
  }
  /// Softmax over the keys, with a further column that is cut off again.
  at::Tensor softmax(const std::string& block, const at::Tensor& scores) const {
    if (!config.sink_logits) return at::softmax(scores, -1);
    const at::Tensor column = get(block + "attn.sink_logits").view({1, -1, 1, 1});
    const at::Tensor sink = column.expand({scores.size(0), scores.size(1), scores.size(2), 1});
    return at::softmax(at::cat({scores, sink}, 3), -1).narrow(3, 0, scores.size(3));
  }
  at::Tensor attention(std::int64_t layer, const std::string& block, const at::Tensor& x) const {
    const std::int64_t d = config.head_dim, heads = config.heads, kv_heads = config.key_heads();
    const at::Tensor qkv = linear(block + "attn.c_attn", x);
    const auto part = [&](std::int64_t first, std::int64_t count) {
      return qkv.narrow(2, first * d, count * d)
          .reshape({x.size(0), x.size(1), count, d})
          .transpose(1, 2);
    };
    at::Tensor q = part(0, heads), k = part(heads, kv_heads), v = part(heads + kv_heads, kv_heads);
    if (config.position == "rope") q = rope(q, config.rope_base), k = rope(k, config.rope_base);
    k = k.repeat_interleave(heads / kv_heads, 1);
    v = v.repeat_interleave(heads / kv_heads, 1);
    at::Tensor hidden = at::ones({x.size(1), x.size(1)}, at::kBool).triu(1);
    if (config.window > 0)
      hidden = hidden | at::ones({x.size(1), x.size(1)}, at::kBool).tril(-config.window);
    const at::Tensor sinks = at::zeros({x.size(1), config.sink_tokens}, at::kBool);  // not hidden
    const at::Tensor all_k = behind_sinks(block + "attn.sink_key", k);
    const at::Tensor scores =
        at::matmul(q, all_k.transpose(2, 3)) / std::sqrt(static_cast<double>(d));
    const at::Tensor p = softmax(block, scores.masked_fill(at::cat({sinks, hidden}, 1), -INFINITY));
    const at::Tensor y = at::matmul(p, behind_sinks(block + "attn.sink_value", v));
    const at::Tensor unit = v / v.norm(2, {-1}, true);
    const at::Tensor z = y - strength(layer, block + "attn.", x) * (y * unit).sum(-1, true) * unit;
    at::Tensor joined = z.transpose(1, 2).flatten(2);
    if (config.output_gate) joined = joined * sigmoid(linear(block + "attn.c_gate", x));
    return linear(block + "attn.c_proj", joined);
  }
  at::Tensor feed_forward(const std::string& block, const at::Tensor& x) const {
    const at::Tensor h = linear(block + "mlp.c_fc", x);
    const at::Tensor share =
        config.feed_forward == "gelu_tanh"
            ? at::tanh(std::sqrt(2 / 3.14159265358979323846) * (h + 0.044715 * h * h * h))
            : at::erf(h / std::sqrt(2.0));
    return linear(block + "mlp.c_proj", h * 0.5 * (1 + share));
  }
  at::Tensor logits(const at::Tensor& tokens) const {
    at::Tensor x = get("transformer.wte.weight").index_select(0, tokens.flatten());
    x = x.view({tokens.size(0), tokens.size(1), -1});
    if (config.position == "learned")
      x = x + get("transformer.wpe.weight").narrow(0, 0, tokens.size(1));
    if (config.embedding_norm) x = norm("transformer.ln_e", x);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string block = "transformer.h." + std::to_string(layer) + ".";
      x = x + attention(layer, block, norm(block + "ln_1", x));
      x = x + feed_forward(block, norm(block + "ln_2", x));
    }
    const char* head = config.tied_head ? "transformer.wte.weight" : "lm_head.weight";
    return at::matmul(norm("transformer.ln_f", x), get(head).t());
  }
};

/// Leaves of their own, in double.
inline Parameters copy(const Gpt& model) {
  Parameters result;
  for (const NamedTensor& parameter : model.parameters())
    result[parameter.name] = parameter.tensor.detach().to(at::kDouble).requires_grad_();
  return result;
}

/// tokens [B, T] -> logits [B, T, V]
inline at::Tensor logits(const ModelConfig& config, const Parameters& parameters,
                         const at::Tensor& tokens) {
  return Eager{config, parameters}.logits(tokens);
}

}  // namespace xsa::model::eager
