#include "xsa/op/expect.h"

#include <cmath>

#include "xsa/op/tensors.h"

namespace xsa::op {

void check_dense(const Expect& expect, const char* name, const at::Tensor& tensor) {
  expect(tensor.layout() == c10::kStrided, name, ": expected a strided (dense) tensor, got ",
         tensor.layout(), "; call .to_dense() first");
}

void check_learned_strength_shape(const Expect& expect, const at::Tensor& strength,
                                  const at::Tensor& rows) {
  const c10::SymInt batch = rows.sym_size(0), heads = rows.sym_size(1), queries = rows.sym_size(2);
  const auto expect_shape = [&](const auto& holds) {
    expect(holds, "learned_strength: expected a scalar, [H] = [", heads, "] or [B, H, T] = [",
           batch, ", ", heads, ", ", queries, "], got ", describe(strength));
  };
  expect_shape(strength.dim() == 0 || strength.dim() == 1 || strength.dim() == 3);
  if (strength.dim() == 1) expect_shape(strength.sym_size(0).sym_eq(heads));
  if (strength.dim() == 3)
    for (int dim = 0; dim < 3; ++dim)
      expect_shape(strength.sym_size(dim).sym_eq(rows.sym_size(dim)));
}

void check_strength_and_eps(const Expect& expect, double strength, double eps) {
  expect(std::isfinite(static_cast<float>(strength)),
         "strength: expected a finite float32 number, got ", strength, "; 1 is the paper's");
  // eps^2 must be a normal float32, or a zero value would divide zero by zero.
  expect(std::isfinite(eps) && eps >= 1e-18, "eps: expected a finite number >= 1e-18, got ", eps,
         "; the default is 1e-12");
}

}  // namespace xsa::op
