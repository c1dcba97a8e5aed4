// Until the fused CPU kernel is built: it takes no call. Weak, so that the kernel replaces it.
#include "xsa/kernels/attention.h"

namespace xsa::kernels {

[[gnu::weak]] std::string unsupported(const AttentionParams&) {
  return "the fused CPU kernel is not built yet";
}
[[gnu::weak]] void forward(const AttentionParams&) {}
[[gnu::weak]] void backward(const AttentionParams&) {}

}  // namespace xsa::kernels
