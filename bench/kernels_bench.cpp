// The fused kernels alone, without Torch: FLOP/s of forward and backward, and their share of what
// this core's multiply-add units can do at that moment. strength 0 is standard attention.
//
//   kernels_bench [--threads=N] [--benchmark_filter=Forward] ...
//   XSA_ISA=AVX2 kernels_bench
//
// One thread by default: threads(N) starts its threads in every call, which short calls feel.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/fma_peak.h"
#include "bench/kernel_call.h"
#include "xsa/base/parallel.h"

namespace {

using xsa::bench::KernelCall;

xsa::Parallel& parallel() {
  static xsa::Parallel team = xsa::serial();
  return team;
}

/// FLOP/s that multiply-adds alone reach on all threads, in the chosen instruction set.
double peak(benchmark::State& state) {
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat)
    best = std::max(best, xsa::bench::fma_flops_per_second(parallel()));
  if (best == 0) state.SetLabel("no peak is known for this instruction set");
  return best;
}

KernelCall call_of(benchmark::State& state) {
  return KernelCall({.length = state.range(0),
                     .dim = state.range(1),
                     .is_causal = state.range(2) != 0,
                     .strength = static_cast<double>(state.range(3))});
}

/// Runs `body` as the benchmark asks, `flops` each.
template <class Body>
void measure(benchmark::State& state, double flops, const Body& body) {
  using benchmark::Counter;
  body();
  const double before = peak(state);
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) body();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const double top = (before + peak(state)) / 2;
  const double rate = flops * static_cast<double>(state.iterations()) / elapsed.count();
  state.counters["FLOP/s"] = Counter(rate, Counter::kDefaults, Counter::kIs1000);
  if (top > 0) state.counters["of_peak"] = rate / top;
}

void Forward(benchmark::State& state) {
  KernelCall call = call_of(state);
  call.params.parallel = &parallel();
  const double flops = call.pairs() * 4.0 * static_cast<double>(state.range(1));
  measure(state, flops, [&] { forward(call.params); });
}

void Backward(benchmark::State& state) {
  KernelCall call = call_of(state);
  call.params.parallel = &parallel();
  forward(call.params);
  const double flops = call.pairs() * 10.0 * static_cast<double>(state.range(1));
  measure(state, flops, [&] { backward(call.params); });
}

void Peak(benchmark::State& state) {
  using benchmark::Counter;
  double best = 0;
  for (auto _ : state) best = std::max(best, xsa::bench::fma_flops_per_second(parallel()));
  state.counters["FLOP/s"] = Counter(best, Counter::kDefaults, Counter::kIs1000);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"T", "D", "causal", "strength"})->UseRealTime()->Unit(benchmark::kMillisecond);
  bench->ArgsProduct({{128, 512, 2048}, {64, 128}, {0, 1}, {0, 1}});
}
BENCHMARK(Peak)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Forward)->Apply(sizes);
BENCHMARK(Backward)->Apply(sizes);

/// Takes --threads=N out of the arguments, which are google-benchmark's otherwise.
void take_threads(int& count, char** arguments) {
  constexpr const char* kName = "--threads=";
  char** const kept = std::remove_if(arguments + 1, arguments + count, [](const char* argument) {
    if (std::strncmp(argument, kName, std::strlen(kName)) != 0) return false;
    const int threads = std::atoi(argument + std::strlen(kName));
    if (threads > 1) parallel() = xsa::threads(threads);
    return true;
  });
  count = static_cast<int>(kept - arguments);
}

}  // namespace

int main(int count, char** arguments) {
  take_threads(count, arguments);
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::AddCustomContext("instruction set", xsa::bench::instruction_set());
  benchmark::AddCustomContext("threads", std::to_string(parallel().workers));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
