// What the doors of all operators share: how a check is written, and the options that several have.
#pragma once

#include <ATen/core/Tensor.h>

namespace xsa::op {

/// `const Expect expect{"xsa::exclude"};`, then expect(holds, parts of a message...): a ValueError
/// that begins with the operator's name, unless `holds`. Also right for symbolic shapes.
struct Expect {
  const char* op;

  template <class... Parts>
  void operator()(bool holds, const Parts&... parts) const {
    TORCH_CHECK_VALUE(holds, op, ": ", parts...);
  }
  template <class... Parts>
  void operator()(const c10::SymBool& holds, const Parts&... parts) const {
    (*this)(holds.expect_true(__FILE__, __LINE__), parts...);
  }
};

void check_dense(const Expect& expect, const char* name, const at::Tensor& tensor);

/// `rows` [B, H, T, ...]: the rows that a learned strength serves.
void check_learned_strength_shape(const Expect& expect, const at::Tensor& strength,
                                  const at::Tensor& rows);

void check_strength_and_eps(const Expect& expect, double strength, double eps);

}  // namespace xsa::op
