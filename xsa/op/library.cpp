// Registers the operators with PyTorch's dispatcher when the library is loaded.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <optional>

#include "xsa/op/backend.h"
#include "xsa/op/registration.h"
#include "xsa/op/signature.h"
#include "xsa/op/tensor_number.h"

namespace xsa::op {
namespace {

void define(torch::Library& library) {
  const std::string options = options_schema();
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  const auto forward = [&](const std::string& overload, const std::string& given) {
    library.def(("attention" + overload + "(Tensor q, Tensor k, Tensor v, *, " + given +
                 ") -> (Tensor z, Tensor lse, Tensor c)")
                    .c_str(),
                tags);
  };
  forward("", options);
  forward(".tensor_strength", options_schema({.strength = "Tensor strength"}));
  forward(".tensor_scale", options_schema({.scale = "Tensor scale"}));
  library.def(
      ("attention_backward(Tensor dz, Tensor? dlse, Tensor q, Tensor k, Tensor v, Tensor z, "
       "Tensor lse, Tensor c, *, " +
       options +
       ") -> (Tensor dq, Tensor dk, Tensor dv, Tensor dlearned_strength, Tensor "
       "dsink_logits)")
          .c_str(),
      tags);
  library.def(
      ("attention_backend(Tensor q, Tensor k, Tensor v, *, " + options + ") -> str").c_str(),
      &ForwardKernel<backend_of>::call);
  library.def("set_backend(str name) -> ()", &set_backend);
  library.def("backend() -> str", &backend);
}

void implement(torch::Library& library) {
  using c10::DispatchKey;
  const auto impl = [&](const char* name, DispatchKey key, auto* function) {
    library.impl(name, torch::dispatch(key, function));
  };
  implement_tensor_number(library, "attention.tensor_strength");
  implement_tensor_number(library, "attention.tensor_scale");
  impl("attention", DispatchKey::CompositeExplicitAutograd,
       &ForwardKernel<composite_forward>::call);
  impl("attention", DispatchKey::CPU, &ForwardKernel<cpu_forward>::call);
  impl("attention", DispatchKey::Meta, &ForwardKernel<meta_forward>::call);
  impl("attention", DispatchKey::Autograd, &ForwardKernel<autograd_forward>::call);
  impl("attention", DispatchKey::AutocastCPU, &ForwardKernel<autocast_cpu_forward>::call);
  impl("attention", DispatchKey::AutocastCUDA, &ForwardKernel<autocast_cuda_forward>::call);
  impl("attention_backward", DispatchKey::CompositeExplicitAutograd,
       &BackwardKernel<composite_backward>::call);
  impl("attention_backward", DispatchKey::CPU, &BackwardKernel<cpu_backward>::call);
  impl("attention_backward", DispatchKey::Meta, &BackwardKernel<meta_backward>::call);
  impl("attention_backward", DispatchKey::Autograd, &BackwardKernel<autograd_backward>::call);
}

/// TORCH_LIBRARY's work, but a second copy of this library in one process (another build, a wheel
/// beside a checkout) leaves the first one's registration in place; TORCH_LIBRARY would throw
/// before main, which ends the process.
std::optional<torch::Library> registered() {
  if (c10::Dispatcher::singleton().findSchema({"xsa::attention", ""})) {
    TORCH_WARN("xsa: another copy of libxsa_op.so is already loaded; that one stays in use");
    return std::nullopt;
  }
  std::optional<torch::Library> library(std::in_place, torch::Library::DEF, "xsa", std::nullopt,
                                        __FILE__, __LINE__);
  define(*library);
  implement(*library);
  register_exclude(*library);
  register_add_layer_norm(*library);
  register_rotary_embedding(*library);
  return library;
}

const std::optional<torch::Library> library = registered();

}  // namespace
}  // namespace xsa::op
