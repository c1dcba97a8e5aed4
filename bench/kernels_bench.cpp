// The fused kernels alone, without Torch: FLOP/s of forward and backward, exclusive against
// standard (strength 0) in the same process. kernels_bench --benchmark_filter=Forward
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "xsa/base/parallel.h"
#include "xsa/base/rng.h"
#include "xsa/kernels/attention.h"

namespace {

using xsa::kernels::AttentionParams;

/// fp32, causal, 12 heads, as the operator calls it.
struct Call {
  Call(std::int64_t length, std::int64_t dim, double strength)
      : size(12 * length * dim), memory(8 * size), rows(2 * 12 * length) {
    xsa::Rng rng(1);
    for (float& value : memory) value = static_cast<float>(rng.normal());
    params.batch = 1, params.query_heads = params.key_heads = 12;
    params.queries = params.keys = length, params.head_dim = params.value_dim = dim;
    params.is_causal = true, params.strength = strength;
    params.scale = 1 / std::sqrt(static_cast<double>(dim));
    const std::array<std::int64_t, 4> dense{size, length * dim, dim, 1};
    float* next = memory.data();
    for (auto* input : {&params.q, &params.k, &params.v, &params.dz})
      *input = {next, dense}, next += size;
    for (auto* output : {&params.z, &params.dq, &params.dk, &params.dv})
      *output = {next, dense}, next += size;
    params.lse = rows.data(), params.c = rows.data() + 12 * length;
    params.parallel = &parallel;
  }
  /// Visible (query, key) pairs of all heads.
  double pairs() const {
    return 12.0 * static_cast<double>(params.queries) * static_cast<double>(params.queries + 1) / 2;
  }

  std::int64_t size;
  std::vector<float> memory, rows;
  xsa::Parallel parallel = xsa::threads(std::max(1u, std::thread::hardware_concurrency()));
  AttentionParams params;
};

void count(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flops * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

void Forward(benchmark::State& state) {
  Call call(state.range(0), state.range(1), static_cast<double>(state.range(2)));
  for (auto _ : state) forward(call.params);
  count(state, call.pairs() * 4.0 * static_cast<double>(state.range(1)));
}

void Backward(benchmark::State& state) {
  Call call(state.range(0), state.range(1), static_cast<double>(state.range(2)));
  forward(call.params);
  for (auto _ : state) backward(call.params);
  count(state, call.pairs() * 10.0 * static_cast<double>(state.range(1)));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"T", "D", "strength"})->UseRealTime()->Unit(benchmark::kMillisecond);
  bench->ArgsProduct({{128, 512, 1024, 2048}, {64, 128}, {0, 1}});
}
BENCHMARK(Forward)->Apply(sizes);
BENCHMARK(Backward)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
