#include "xsa/op/tensor_number.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace xsa::op {
namespace {

void call_with_number(const c10::OperatorHandle& overload, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = overload.schema();
  const auto argument = [&](const char* name) -> c10::IValue& {
    const auto index = static_cast<std::size_t>(*schema.argumentIndexWithName(name));
    return torch::jit::peek(*stack, index, schema.arguments().size());
  };
  const auto take = [&](const char* name, const char* remedy) {
    const at::Tensor number = argument(name).toTensor();
    TORCH_CHECK_VALUE(!number.requires_grad(), schema.name(), ": ", name,
                      ": expected a number, got a tensor that requires a gradient, which would be "
                      "lost; ",
                      remedy, ", or pass its .item() for the value alone");
    return number;
  };
  if (argument("strength").isTensor()) {
    const at::Tensor strength = take("strength", "pass it as learned_strength");
    // Not .item(): nobody needs to know the value while a graph is traced.
    if (argument("learned_strength").isNone()) argument("learned_strength") = strength;
    argument("strength") = 1.0;
  } else {
    argument("scale") = take("scale", "multiply q by it and pass scale=1").item();
  }
  c10::Dispatcher::singleton().findSchemaOrThrow(schema.name().c_str(), "").callBoxed(stack);
}

}  // namespace

void implement_tensor_number(torch::Library& library, const char* overload) {
  library.impl(overload,
               torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd,
                               torch::CppFunction::makeFromBoxedFunction<&call_with_number>()));
}

}  // namespace xsa::op
