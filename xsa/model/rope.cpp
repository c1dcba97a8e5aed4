#include "xsa/model/rope.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace xsa::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

enum class Turn { kForward, kBack };

/// dst [B, T, H, D] = src [B, T, H, D], turned where there are tables. In place if they are one.
template <class T>
void turn(const at::Tensor& src, const at::Tensor& dst, const RopeTables& rope, Turn direction) {
  const std::int64_t steps = src.size(1), heads = src.size(2), half = src.size(3) / 2;
  const std::int64_t src_b = src.stride(0), src_t = src.stride(1), src_h = src.stride(2);
  const std::int64_t dst_b = dst.stride(0), dst_t = dst.stride(1), dst_h = dst.stride(2);
  const T* const from = src.const_data_ptr<T>();
  T* const to = dst.mutable_data_ptr<T>();
  const float* const cosines = rope.cos.const_data_ptr<float>();
  const float* const sines = rope.sin.const_data_ptr<float>();
  const float sign = direction == Turn::kForward ? 1.0F : -1.0F;
  at::parallel_for(0, src.size(0) * steps, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t b = row / steps, t = row % steps;
      const float* const cos = cosines + t * half;
      const float* const sin = sines + t * half;
      for (std::int64_t h = 0; h < heads; ++h) {
        const T* const x = from + b * src_b + t * src_t + h * src_h;
        T* const out = to + b * dst_b + t * dst_t + h * dst_h;
#pragma omp simd
        for (std::int64_t i = 0; i < half; ++i) {
          const auto first = static_cast<at::opmath_type<T>>(x[i]);
          const auto second = static_cast<at::opmath_type<T>>(x[i + half]);
          const auto s = sign * sin[i];
          out[i] = static_cast<T>(first * cos[i] - second * s);
          out[i + half] = static_cast<T>(first * s + second * cos[i]);
        }
      }
    }
  });
}

void turn(const at::Tensor& src, const at::Tensor& dst, const RopeTables& rope, Turn direction) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, src.scalar_type(), "rope", [&] {
    turn<scalar_t>(src.stride(3) == 1 ? src : src.contiguous(), dst, rope, direction);
  });
}

/// [B, T, (H + 2 K) D] as its three parts [B, T, H or K, D].
std::array<at::Tensor, 3> parts(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads) {
  const at::Tensor all = qkv.view({qkv.size(0), qkv.size(1), heads + 2 * kv_heads, -1});
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
      turn(q, q, rope, Turn::kForward);
      turn(k, k, rope, Turn::kForward);
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
        turn(gradient, targets[part], rope, Turn::kBack);
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
