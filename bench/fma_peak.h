// What the multiply-add units reach when nothing else stands in their way: registers only.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "xsa/base/parallel.h"
#include "xsa/kernels/attention.h"

namespace xsa::bench {

/// The one that the kernels use: XSA_ISA, or the machine's best.
inline std::string instruction_set() {
  const char* chosen = std::getenv("XSA_ISA");
  return chosen && *chosen ? chosen : kernels::instruction_sets().front();
}

constexpr int kChains = 12;  // independent sums: more than latency times units; all in registers

#if defined(__x86_64__)
// The loops are the same; a function that takes its vector type as a template parameter could not
// carry a target of its own. `+v` keeps every sum in a register and the loop in place.
__attribute__((target("avx512f"))) inline void fma_avx3(std::int64_t steps) {
  __m512 sums[kChains], x = _mm512_set1_ps(0.5f);
  for (__m512& sum : sums) sum = x;
  for (std::int64_t step = 0; step < steps; ++step)
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, x, x);
      asm volatile("" : "+v"(sum));
    }
}

__attribute__((target("avx2,fma"))) inline void fma_avx2(std::int64_t steps) {
  __m256 sums[kChains], x = _mm256_set1_ps(0.5f);
  for (__m256& sum : sums) sum = x;
  for (std::int64_t step = 0; step < steps; ++step)
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(sum, x, x);
      asm volatile("" : "+x"(sum));
    }
}
#endif

/// All workers at once, well under a millisecond; 0 where there is no loop for the instruction set.
inline double fma_flops_per_second(const Parallel& parallel) {
#if defined(__x86_64__)
  const std::string name = instruction_set();
  const bool wide = name == "AVX3";
  if (!wide && name != "AVX2") return 0;
  constexpr std::int64_t kSteps = 200'000;
  std::vector<double> rates(parallel.workers);
  parallel.run(parallel.workers, [&](std::int64_t index, std::int64_t) {
    const auto begin = std::chrono::steady_clock::now();
    wide ? fma_avx3(kSteps) : fma_avx2(kSteps);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    rates[index] = 2.0 * kSteps * kChains * (wide ? 16 : 8) / elapsed.count();
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
#else
  (void)parallel;
  return 0;
#endif
}

}  // namespace xsa::bench
