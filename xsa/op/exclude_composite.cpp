// xsa::exclude in eager ATen, for float64 and for devices without a kernel.
//
// Shapes inside, G = H / K query heads to a value head: rows [B, K, G, T, Dv], w [B, K, 1, T, Dv],
// a row's scalars [B, K, G, T, 1]. All in the accumulate type.
#include <ATen/ATen.h>

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
    w = v.to(type).narrow(2, own_offset, rows.size(2)).unsqueeze(2);
    sigma = own_scale(w, o.eps);
    w_scaled = w / sigma;
    const Tensor ww = (w_scaled * w_scaled).sum(-1, true), least = (o.eps / sigma).square();
    norm = at::maximum(ww, least);
    eps_decides = ww < least;
    strength = at::full({}, o.strength, w.options());
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
  Tensor w, sigma, w_scaled;  // w = sigma w_scaled, sigma a power of two near w
  Tensor norm, eps_decides;   // max(w . w, eps^2) / sigma^2
  Tensor strength;            // [B, K, G, T, 1], or 0-dimensional
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
  const Tensor along = (y * call.w_scaled).sum(-1, true) / call.norm;  // c sigma
  const Tensor c = along / call.sigma;
  const Tensor z = call.excludes ? y - call.strength * along * call.w_scaled : y;
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
    // No factor has both c and ratio (core/exclusion.h).
    const Tensor mirrored =
        z - c * (at::where(call.eps_decides, at::zeros_like(two), two) - a) * call.w;
    const Tensor direct = -a * (c * dz + ratio / call.sigma * mirrored);
    dv.narrow(2, call.own_offset, in.z.size(2)).copy_(direct.sum(2));
  }
  Tensor dstrength;
  if (has(options.learned_strength))
    dstrength = sum_to_option((c * dz_w * call.sigma).neg_().reshape(in.c.sizes()),
                              *options.learned_strength);
  return {written_like(in.z, call.excludes ? dz - a * ratio * w : dz), written_like(in.v, dv),
          dstrength};
}

}  // namespace xsa::op
