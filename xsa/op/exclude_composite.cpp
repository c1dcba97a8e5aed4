// xsa::exclude in eager ATen, for float64 and for devices without a kernel.
//
// Shapes inside, G = H / K query heads to a value head: rows [B, K, G, T, Dv], w [B, K, 1, T, Dv],
// a row's scalars [B, K, G, T, 1]. All in the accumulate type.
#include <ATen/ATen.h>

#include <cmath>

#include "xsa/op/exclude_signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;

struct Call {
  Call(const Tensor& rows, const Tensor& v, const ExcludeOptions& o)
      : type(accumulate_type(v)),
        sizes{v.size(0), v.size(1), rows.size(1) / v.size(1), rows.size(2), v.size(3)},
        own_offset(own_offset_of(rows, v, o.own_offset)),
        excludes(has(o.learned_strength) || o.strength != 0) {
    const Tensor w = v.to(type).narrow(2, own_offset, rows.size(2)).unsqueeze(2);
    const Tensor one = at::ones({}, w.options());
    const bool is_double = type == at::kDouble;
    // w may be so large that w . w overflows: it is divided by sigma, a power of two, first.
    sigma = at::where(w.abs().amax(-1, true) > std::ldexp(1.0, is_double ? 500 : 60),
                      one * std::ldexp(1.0, is_double ? 800 : 96), one);
    w_scaled = w / sigma;
    const Tensor ww = (w_scaled * w_scaled).sum(-1, true), least = (o.eps / sigma).square();
    norm = at::maximum(ww, least);
    eps_decides = ww < least;
    strength = one * o.strength;
    if (!has(o.learned_strength)) return;
    const Tensor a = o.learned_strength->to(type);
    strength = scalars((a.dim() == 1 ? a.view({1, -1, 1}) : a).expand(rows.sizes().slice(0, 3)));
  }
  Tensor grouped(const Tensor& rows) const { return rows.to(type).reshape(sizes); }
  Tensor scalars(const Tensor& per_row) const {
    return per_row.reshape({sizes[0], sizes[1], sizes[2], sizes[3], 1});
  }

  at::ScalarType type;
  std::array<std::int64_t, 5> sizes;
  std::int64_t own_offset;
  bool excludes;
  Tensor sigma, w_scaled;    // w = sigma w_scaled
  Tensor norm, eps_decides;  // max(w . w, eps^2) / sigma^2
  Tensor strength;           // [B, K, G, T, 1], or 0-dimensional
};

Tensor written_like(const Tensor& like, const Tensor& value) {
  Tensor out = new_laid_out_like(like, like.size(3));
  out.copy_(value.reshape(out.sizes()));
  return out;
}

}  // namespace

ExcludeOutputs exclude_composite(const ExcludeInputs& in, const ExcludeOptions& options) {
  check_exclude(in, options);
  const Call call(in.y, in.v, options);
  const Tensor y = call.grouped(in.y);
  const Tensor c = (y / call.sigma * call.w_scaled).sum(-1, true) / call.norm;
  const Tensor z = call.excludes ? y - call.strength * c * call.sigma * call.w_scaled : y;
  return {written_like(in.y, z), c.reshape(in.y.sizes().slice(0, 3))};
}

ExcludeGradients exclude_backward_composite(const ExcludeBackwardInputs& in,
                                            const ExcludeOptions& options) {
  check_exclude(in, options);
  const Call call(in.z, in.v, options);
  const Tensor dz = call.grouped(in.dz), z = call.grouped(in.z);
  const Tensor c = call.scalars(in.c);
  const Tensor &a = call.strength, &w = call.w_scaled;
  const Tensor dz_w = (dz * w).sum(-1, true);  // g / sigma
  const Tensor ratio = dz_w / call.norm;       // g sigma / n
  const Tensor dv = at::zeros(in.v.sizes(), in.v.options().dtype(call.type));
  if (call.excludes) {
    const Tensor two = at::full({}, 2, a.options());
    const Tensor along_w =
        a * c * ratio * (at::where(call.eps_decides, at::zeros_like(two), two) - a);
    const Tensor direct = (along_w * w - a * (c * dz + ratio / call.sigma * z)).sum(2);
    dv.narrow(2, call.own_offset, in.z.size(2)).copy_(direct);
  }
  Tensor dstrength;
  if (has(options.learned_strength))
    dstrength = sum_to_option((c * dz_w * call.sigma).neg_().reshape(in.c.sizes()),
                              *options.learned_strength);
  return {written_like(in.z, call.excludes ? dz - a * ratio * w : dz), written_like(in.v, dv),
          dstrength};
}

}  // namespace xsa::op
