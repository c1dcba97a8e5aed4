// The door of xsa::exclude, as checks.cpp is that of the attention.
#include "xsa/op/exclude_signature.h"
#include "xsa/op/expect.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using c10::SymInt;

const Expect expect{"xsa::exclude"};

/// `name` is y, or what has its shape in the backward.
void check_tensors(const char* name, const Tensor& y, const Tensor& v) {
  for (const auto& [who, tensor, shape] :
       {std::tuple<const char*, const Tensor&, const char*>{name, y, "[B, H, T, Dv]"},
        {"v", v, "[B, K, S, Dv]"}}) {
    check_dense(expect, who, tensor);
    expect(tensor.dim() == 4, who, ": expected 4 dimensions ", shape, ", got ", describe(tensor),
           "; unsqueeze missing batch or head dimensions");
  }
  const at::ScalarType type = y.scalar_type();
  expect(type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
         name, ": expected float32, float64, bfloat16 or float16, got ", describe(y));
  expect(v.scalar_type() == type && v.device() == y.device(), "v: expected type and device of ",
         name, ", ", type, " on ", y.device(), ", got ", describe(v));
  for (const auto& [dim, letter] : {std::pair{0, "B"}, {3, "Dv"}})
    expect(v.sym_size(dim).sym_eq(y.sym_size(dim)), "v: expected ", letter, " = ", y.sym_size(dim),
           " in dimension ", dim, " as in ", name, ", got ", describe(v));
  expect(v.sym_size(3).sym_ge(1), "v: expected a head dimension Dv of at least 1, got ",
         describe(v));
  const SymInt heads = y.sym_size(1), key_heads = v.sym_size(1);
  expect(key_heads.sym_ge(1), "v: expected at least 1 head, got ", describe(v));
  expect((heads % key_heads).sym_eq(0), name, ": expected H to be a multiple of K = ", key_heads,
         " (each value head serves H / K query heads), got H = ", heads);
}

void check_options(const Tensor& y, const Tensor& v, const ExcludeOptions& o) {
  const SymInt queries = y.sym_size(2), keys = v.sym_size(2);
  if (o.own_offset) {
    const SymInt& own = *o.own_offset;
    expect(own.sym_ge(0), "own_offset: expected at least 0, got ", own,
           "; it is the index of the first query's own value");
    expect((keys - queries).sym_ge(own), "own_offset: expected own_offset + T <= S = ", keys,
           " (query i owns value own_offset + i), got ", own, " + ", queries);
  } else {
    expect(queries.sym_le(keys), "v: expected S >= T = ", queries, ", got S = ", keys,
           "; every query needs its own value: append them, or pass own_offset");
  }
  check_strength_and_eps(expect, o.strength, o.eps);
  if (!has(o.learned_strength)) return;
  const Tensor& a = *o.learned_strength;
  expect(at::isFloatingType(a.scalar_type()) && a.device() == y.device(),
         "learned_strength: expected a floating-point tensor on ", y.device(), ", got ",
         describe(a));
  check_learned_strength_shape(expect, a, y);
}

}  // namespace

void check_exclude(const ExcludeInputs& in, const ExcludeOptions& options) {
  check_tensors("y", in.y, in.v);
  check_options(in.y, in.v, options);
}

void check_exclude(const ExcludeBackwardInputs& in, const ExcludeOptions& options) {
  check_tensors("z", in.z, in.v);
  check_options(in.z, in.v, options);
  const auto as_z = [&](const char* name, const Tensor& tensor, int dims, at::ScalarType type) {
    expect(tensor.dim() == dims && tensor.scalar_type() == type && tensor.device() == in.z.device(),
           name, ": expected ", dims == 4 ? "[B, H, T, Dv] as z" : "[B, H, T]",
           " of the forward, got ", describe(tensor));
    for (int dim = 0; dim < dims; ++dim)
      expect(tensor.sym_size(dim).sym_eq(in.z.sym_size(dim)), name, ": expected ",
             in.z.sym_size(dim), " in dimension ", dim, " as in z, got ", describe(tensor));
  };
  as_z("dz", in.dz, 4, in.z.scalar_type());
  as_z("c", in.c, 3, accumulate_type(in.z));
}

}  // namespace xsa::op
