// The door of the CPU kernels; none is built yet.
#include "xsa/kernels/attention.h"
#include "xsa/base/error.h"

namespace xsa::kernels {

std::string unsupported(const AttentionParams&) { return "the CPU kernel is not built yet"; }
void forward(const AttentionParams& params) { throw Error(unsupported(params)); }
void backward(const AttentionParams& params) { throw Error(unsupported(params)); }
std::vector<std::string> instruction_sets() { return {"SCALAR"}; }
void choose_instruction_set(std::string_view name) {
  check_usage(name.empty() || name == "SCALAR", "choose_instruction_set: unknown ", name);
}

}  // namespace xsa::kernels
