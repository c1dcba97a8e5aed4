#include "xsa/model/rope.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "xsa/op/rotary_embedding.h"

namespace xsa::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// dst [B, T, H, D] = src [B, T, H, D], turned at positions 0 .. T - 1; they may be one.
void turn(const at::Tensor& src, const at::Tensor& dst, const RopeTables& rope,
          bool inverse = false) {
  op::rotary_embedding_into(src.transpose(1, 2), rope.cos, rope.sin, {.inverse = inverse},
                            dst.transpose(1, 2));
}

at::Tensor all_heads(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads) {
  return qkv.view({qkv.size(0), qkv.size(1), heads + 2 * kv_heads, -1});
}

/// [B, T, (H + 2 K) D] as its three parts [B, T, H or K, D].
std::array<at::Tensor, 3> parts(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads) {
  const at::Tensor all = all_heads(qkv, heads, kv_heads);
  return {all.narrow(2, 0, heads), all.narrow(2, heads, kv_heads),
          all.narrow(2, heads + kv_heads, kv_heads)};
}

struct SplitHeads : torch::autograd::Function<SplitHeads> {
  static tensor_list forward(AutogradContext* ctx, const at::Tensor& qkv, std::int64_t heads,
                             std::int64_t kv_heads, const RopeTables& rope) {
    // Below autograd's view tracking: q, k and v are results of their own, in qkv's memory, which
    // no earlier node has saved.
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [q, k, v] = parts(qkv, heads, kv_heads);
    if (rope.cos.defined()) {
      const at::Tensor turned = all_heads(qkv, heads, kv_heads).narrow(2, 0, heads + kv_heads);
      turn(turned, turned, rope);
    }
    ctx->set_materialize_grads(false);
    ctx->saved_data["sizes"] = qkv.sizes();
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["kv_heads"] = kv_heads;
    ctx->saved_data["cos"] = rope.cos;
    ctx->saved_data["sin"] = rope.sin;
    return {q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)};
  }

  static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
    const RopeTables rope{ctx->saved_data["cos"].toTensor(), ctx->saved_data["sin"].toTensor()};
    const auto defined = std::find_if(gradients.begin(), gradients.end(),
                                      [](const at::Tensor& g) { return g.defined(); });
    if (defined == gradients.end()) return tensor_list(4);
    const at::Tensor dqkv = at::empty(ctx->saved_data["sizes"].toIntVector(), defined->options());
    const auto targets =
        parts(dqkv, ctx->saved_data["heads"].toInt(), ctx->saved_data["kv_heads"].toInt());
    for (std::size_t part = 0; part < 3; ++part) {
      if (!gradients[part].defined()) {
        targets[part].zero_();
      } else if (const at::Tensor gradient = gradients[part].transpose(1, 2);
                 part < 2 && rope.cos.defined()) {
        turn(gradient, targets[part], rope, /*inverse=*/true);
      } else {
        targets[part].copy_(gradient);
      }
    }
    return {dqkv, {}, {}, {}};
  }
};

}  // namespace

RopeTables rope_tables(std::int64_t context, std::int64_t head_dim, double base) {
  const std::int64_t half = head_dim / 2;
  RopeTables tables{at::empty({context, half}, at::kFloat), at::empty({context, half}, at::kFloat)};
  float* const cos = tables.cos.mutable_data_ptr<float>();
  float* const sin = tables.sin.mutable_data_ptr<float>();
  for (std::int64_t t = 0; t < context; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      cos[t * half + i] = static_cast<float>(std::cos(angle));
      sin[t * half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return tables;
}

Heads split_heads(at::Tensor qkv, std::int64_t heads, std::int64_t kv_heads,
                  const RopeTables& rope) {
  tensor_list result = SplitHeads::apply(qkv, heads, kv_heads, rope);
  return {std::move(result[0]), std::move(result[1]), std::move(result[2])};
}

}  // namespace xsa::model
