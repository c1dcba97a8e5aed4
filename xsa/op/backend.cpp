#include "xsa/op/backend.h"

#include <ATen/ATen.h>

#include <atomic>

#include "xsa/op/checks.h"
#include "xsa/op/kernel_call.h"

namespace xsa::op {
namespace {

enum class Backend { kAuto, kComposite, kCpuFused };
std::atomic<Backend> chosen_backend = Backend::kAuto;

}  // namespace

void set_backend(const std::string& name) {
  TORCH_CHECK_VALUE(name == "auto" || name == "composite" || name == "cpu_fused",
                    "xsa::set_backend: expected auto, composite or cpu_fused, got '", name, "'");
  chosen_backend = name == "auto"        ? Backend::kAuto
                   : name == "composite" ? Backend::kComposite
                                         : Backend::kCpuFused;
}

std::string backend() {
  switch (chosen_backend.load()) {
    case Backend::kComposite:
      return "composite";
    case Backend::kCpuFused:
      return "cpu_fused";
    default:
      return "auto";
  }
}

std::string why_not_fused(const Inputs& inputs, const AttentionOptions& options) {
  const Backend choice = chosen_backend;
  if (choice == Backend::kComposite) return "set_backend('composite') is in force";
  std::string why;
  if (!inputs.q.is_cpu())
    why = c10::str("no fused kernel for ", inputs.q.device().type(), " tensors yet");
  else if (inputs.q.scalar_type() == at::kDouble)
    why = "float64 is for checking, and has no fused kernel";
  else
    why = kernels::unsupported(KernelCall(inputs, options).params);
  TORCH_CHECK_NOT_IMPLEMENTED(why.empty() || choice == Backend::kAuto,
                              "xsa::attention: set_backend('cpu_fused') is in force, but ", why,
                              "; call set_backend('auto')");
  return why;
}

std::string backend_of(const Inputs& inputs, const AttentionOptions& options) {
  check_call(inputs, options);
  const std::string why = why_not_fused(inputs, options);
  return why.empty() ? "cpu_fused" : "composite: " + why;
}

bool takes_kernel(const char* op, const at::Tensor& x) {
  const Backend choice = chosen_backend;
  const bool is_double = x.scalar_type() == at::kDouble;
  TORCH_CHECK_NOT_IMPLEMENTED(choice != Backend::kCpuFused || !is_double, op,
                              ": set_backend('cpu_fused') is in force, but float64 has no fused "
                              "kernel; call set_backend('auto')");
  return x.is_cpu() && !is_double && choice != Backend::kComposite;
}

}  // namespace xsa::op
