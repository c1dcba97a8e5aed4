#include "xsa/kernels/cpu/dispatch.h"

#include <atomic>
#include <cstdlib>

#include "xsa/base/error.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {
namespace cpu {
namespace {

bool machine_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");  // f16c came with these
#else
  return false;
#endif
}

bool machine_has_avx3() {
#if defined(__x86_64__)
  return machine_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");  // Highway since 1.1 wants it too
#else
  return false;
#endif
}

/// Best first.
const std::vector<const Kernels*>& available() {
  static const std::vector<const Kernels*> kAvailable = [] {
    std::vector<const Kernels*> list;
    if (avx3_kernels() && machine_has_avx3()) list.push_back(avx3_kernels());
    if (avx2_kernels() && machine_has_avx2()) list.push_back(avx2_kernels());
    list.push_back(baseline_kernels());
    return list;
  }();
  return kAvailable;
}

const Kernels* find(std::string_view name, std::string_view who) {
  if (name.empty()) return available().front();
  std::string names;
  for (const Kernels* kernels : available()) {
    if (kernels->name == name) return kernels;
    names += cat(names.empty() ? "" : ", ", kernels->name);
  }
  throw UsageError(cat(who, ": expected one of this machine's instruction sets (", names,
                       "), got '", name, "'"));
}

std::atomic<const Kernels*>& choice() {
  static std::atomic<const Kernels*> choice = [] {
    const char* name = std::getenv("XSA_ISA");
    return find(name ? name : "", "XSA_ISA");
  }();
  return choice;
}

}  // namespace

const Kernels& chosen_kernels() { return *choice(); }

}  // namespace cpu

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::Kernels* kernels : cpu::available()) names.push_back(kernels->name);
  return names;
}

void choose_instruction_set(std::string_view name) {
  cpu::choice() = cpu::find(name, "choose_instruction_set");
}

}  // namespace xsa::kernels
