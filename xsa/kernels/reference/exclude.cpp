// The exclusion alone, by its definition: docs/maths.md in double, one query at a time.
#include "xsa/kernels/exclude.h"

#include "xsa/kernels/core/element.h"
#include "xsa/kernels/core/exclusion.h"

namespace xsa::kernels {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

/// Query i of head h in batch b.
struct Row {
  std::int64_t at, own;  // its index in [B, H, T], and its own key's in [B, K, S]
  double strength, c;
  Vector w, z;
};

class Reference {
 public:
  explicit Reference(const ExcludeParams& params) : p_(params) {}

  template <class Visit>
  void for_each_row(Visit visit) const {
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t h = 0; h < p_.query_heads; ++h)
        for (std::int64_t i = 0; i < p_.queries; ++i) visit(b, h, i, row(b, h, i));
  }
  Vector read(const View& view, std::int64_t b, std::int64_t h, std::int64_t t) const {
    Vector values(p_.value_dim);
    for (std::int64_t d = 0; d < p_.value_dim; ++d)
      values[d] = load_element(
          p_.type, view.data,
          b * view.stride[0] + h * view.stride[1] + t * view.stride[2] + d * view.stride[3]);
    return values;
  }

 private:
  Row row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const std::int64_t key_head = h / (p_.query_heads / p_.key_heads), own = p_.own_offset + i;
    const auto& stride = p_.learned_strength_stride;
    Row row;
    row.at = (b * p_.query_heads + h) * p_.queries + i;
    row.own = (b * p_.key_heads + key_head) * p_.keys + own;
    row.strength = p_.learned_strength
                       ? p_.learned_strength[b * stride[0] + h * stride[1] + i * stride[2]]
                       : p_.strength;
    row.w = read(p_.v, b, key_head, own);
    row.z = read(p_.y, b, h, i);
    row.c = exclusion_coefficient(dot(row.z, row.w), dot(row.w, row.w), p_.eps);
    if (row.strength != 0)
      for (std::size_t d = 0; d < row.z.size(); ++d)
        row.z[d] = exclude(row.z[d], row.strength * row.c, row.w[d]);
    return row;
  }

  const ExcludeParams& p_;
};

}  // namespace

ReferenceExclude reference_exclude(const ExcludeParams& params) {
  ReferenceExclude out;
  Reference(params).for_each_row([&](auto, auto, auto, const Row& row) {
    out.z.insert(out.z.end(), row.z.begin(), row.z.end());
    out.c.push_back(row.c);
  });
  return out;
}

ReferenceExcludeBackward reference_exclude_backward(const ExcludeParams& params) {
  const Reference reference(params);
  ReferenceExcludeBackward out;
  out.dv.resize(params.batch * params.key_heads * params.keys * params.value_dim);
  reference.for_each_row([&](auto b, auto h, auto i, const Row& row) {
    const Vector dz = reference.read(params.dz, b, h, i);
    const ExclusionGradient gradient =
        exclusion_gradient(row.strength, row.c, dot(dz, row.w), dot(row.w, row.w), params.eps);
    double* dw = out.dv.data() + row.own * params.value_dim;
    for (std::size_t d = 0; d < dz.size(); ++d) {
      out.dy.push_back(dz[d] - gradient.dy_w * row.w[d]);
      dw[d] += gradient.dw_dz * dz[d] - gradient.dy_w * (row.z[d] - gradient.z_w * row.w[d]);
    }
    out.dlearned_strength.push_back(gradient.dstrength);
  });
  return out;
}

}  // namespace xsa::kernels
