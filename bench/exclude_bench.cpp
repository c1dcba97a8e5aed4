// The exclusion alone against a loop that only reads and writes the same streams, in one process
// and in random order: which share of that loop's speed is reached. Every thread has a call of its
// own. Speeds are by CPU time and for one thread: on a machine that others use too, a share by the
// clock says little. Prints a table and writes results/exclude_cpu.json (--out=FILE).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/base/rng.h"
#include "xsa/base/system.h"
#include "xsa/kernels/exclude.h"

namespace {

using xsa::kernels::ExcludeParams;
using xsa::kernels::Type;

struct Shape {
  const char* name;
  Type type;
  std::int64_t value_dim, group;

  std::int64_t row_bytes() const { return value_dim * (type == Type::kFloat32 ? 4 : 2); }
};
constexpr Shape kShapes[] = {
    {"fp32", Type::kFloat32, 64, 1},           {"fp32", Type::kFloat32, 128, 1},
    {"fp32", Type::kFloat32, 80, 1},           {"fp32 grouped", Type::kFloat32, 64, 4},
    {"bf16", Type::kBFloat16, 64, 1},          {"bf16", Type::kBFloat16, 128, 1},
    {"bf16 grouped", Type::kBFloat16, 128, 4}, {"fp16", Type::kFloat16, 128, 1},
};

/// What one thread works on: [1, 8, T, Dv], about `bytes` in all streams together.
struct Call {
  Call(const Shape& shape, bool backward, std::int64_t bytes) {
    constexpr std::int64_t kHeads = 8;
    const std::int64_t group = shape.group, key_heads = kHeads / group;
    const std::int64_t streams = key_heads * (backward ? 2 + 3 * group : 1 + 2 * group);
    const std::int64_t row = shape.row_bytes();
    const std::int64_t tokens = std::max<std::int64_t>(1, bytes / (streams * row));
    moved = static_cast<double>(streams * tokens * row);
    // y and z, or dz, z and dy; v, or v and dv.
    const std::int64_t big = kHeads * tokens * row, small = key_heads * tokens * row;
    memory.resize((backward ? 3 * big + 2 * small : 2 * big + small) / 4);
    c.assign(kHeads * tokens, 0.5f);
    fill(shape.type);
    char* next = reinterpret_cast<char*>(memory.data());
    const auto take = [&](std::int64_t size) {
      char* taken = next;
      next += size;
      return taken;
    };
    const std::int64_t dim = shape.value_dim;
    const std::array<std::int64_t, 4> stride{0, tokens * dim, dim, 1};
    params.batch = 1, params.query_heads = kHeads, params.key_heads = key_heads;
    params.queries = params.keys = tokens, params.value_dim = dim;
    params.type = shape.type;
    params.v = {take(small), stride};
    if (backward) {
      params.dz = {take(big), stride}, params.z = {take(big), stride};
      params.dy = {take(big), stride}, params.dv = {take(small), stride};
    } else {
      params.y = {take(big), stride}, params.z = {take(big), stride};
    }
    params.c = c.data();
  }

  void fill(Type type) {
    xsa::Rng rng(1);
    std::uint32_t some[1024];
    for (std::uint32_t& word : some) {
      const auto high = static_cast<std::uint32_t>(rng.next() & 0x83ff);  // +-[2, 4) as bf16
      word = type == Type::kFloat32    ? 0x40000000u | (high << 8)
             : type == Type::kBFloat16 ? 0x40004000u | (high & 0x8000807fu) * 0x10001u
                                       : 0x40004000u | (high & 0x83ffu) * 0x10001u;
    }
    for (std::size_t n = 0; n < memory.size(); ++n) memory[n] = some[n % 1024];
  }

  ExcludeParams params;
  double moved = 0;  // bytes read and written, c apart
  std::vector<std::uint32_t> memory;
  std::vector<float> c;
};

// ---- the same streams, and nothing to compute but one operation a word

#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default"), noinline))

WIDEST void stream_forward(const std::uint32_t* __restrict y, const std::uint32_t* __restrict v,
                           std::uint32_t* __restrict z, std::int64_t words) {
  for (std::int64_t n = 0; n < words; ++n) z[n] = y[n] + v[n];
}
WIDEST void stream_backward(const std::uint32_t* __restrict dz, const std::uint32_t* __restrict z,
                            const std::uint32_t* __restrict v, std::uint32_t* __restrict dy,
                            std::uint32_t* __restrict dv, std::int64_t words) {
  for (std::int64_t n = 0; n < words; ++n) dy[n] = dz[n] + v[n], dv[n] = z[n] + v[n];
}

const std::uint32_t* words(const void* data) { return static_cast<const std::uint32_t*>(data); }
std::uint32_t* words(void* data) { return static_cast<std::uint32_t*>(data); }

/// Blocks of rows small enough that v's stays in L1 for all heads of its group.
void stream(const ExcludeParams& p, std::int64_t row_words, bool backward) {
  const std::int64_t group = p.query_heads / p.key_heads, head = p.queries * row_words;
  const std::int64_t block = group == 1 ? head : std::int64_t{2048};
  for (std::int64_t k = 0; k < p.key_heads; ++k)
    for (std::int64_t at = 0; at < head; at += block) {
      const std::int64_t count = std::min(block, head - at), own = k * head + at;
      for (std::int64_t h = k * group; h < (k + 1) * group; ++h) {
        const std::int64_t row = h * head + at;
        if (backward)
          stream_backward(words(p.dz.data) + row, words(p.z.data) + row, words(p.v.data) + own,
                          words(p.dy.data) + row, words(p.dv.data) + own, count);
        else
          stream_forward(words(p.y.data) + row, words(p.v.data) + own, words(p.z.data) + row,
                         count);
      }
    }
}

void measure(benchmark::State& state, const Shape& shape, bool backward, bool ours,
             std::int64_t bytes) {
  const Call call(shape, backward, bytes);
  for (auto _ : state) {
    if (!ours)
      stream(call.params, shape.row_bytes() / 4, backward);
    else if (backward)
      exclude_backward(call.params);
    else
      exclude_forward(call.params);
    benchmark::ClobberMemory();
  }
  state.counters["B/s"] = benchmark::Counter(call.moved * static_cast<double>(state.iterations()),
                                             benchmark::Counter::kIsRate);
}

// ---- report

double quantile(std::vector<double> sorted, double share) {
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// Collects the speed of every repetition, by name.
class Collector : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration)
        speeds[run.run_name.function_name].push_back(run.counters.at("B/s"));
  }
  void Finalize() override {}
  std::map<std::string, std::vector<double>> speeds;
};

std::string name_of(const char* who, const Shape& shape, bool backward, const char* place) {
  return std::string(who) + (backward ? " backward " : " forward ") + shape.name + " Dv " +
         std::to_string(shape.value_dim) + " " + place;
}

}  // namespace

int main(int argc, char** argv) {
  std::string out = "results/exclude_cpu.json";
  std::vector<char*> arguments(argv, argv + argc);
  static char interleave[] = "--benchmark_enable_random_interleaving=true";
  arguments.insert(arguments.begin() + 1, interleave);
  for (auto it = arguments.begin() + 1; it != arguments.end();)
    if (std::string(*it).starts_with("--out=")) {
      out = *it + 6;
      it = arguments.erase(it);
    } else {
      ++it;
    }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  const int threads = static_cast<int>(xsa::default_threads());
  constexpr std::pair<const char*, std::int64_t> kPlaces[] = {
      {"L2", 1 << 20}, {"L3", 24 << 20}, {"memory", 192 << 20}};  // bytes a thread
  for (const Shape& shape : kShapes)
    for (const auto& [place, bytes] : kPlaces)
      for (const bool backward : {false, true})
        for (const bool ours : {true, false})
          benchmark::RegisterBenchmark(
              name_of(ours ? "xsa" : "plain", shape, backward, place).c_str(),
              [=, bytes = bytes](benchmark::State& state) {
                measure(state, shape, backward, ours, bytes);
              })
              ->Threads(threads)
              ->MinTime(0.05)
              ->Repetitions(5);
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);

  xsa::Json results = xsa::Json::array();
  std::printf("%-44s %10s %10s %7s\n", "GB/s, median", "xsa", "plain", "share");
  for (const Shape& shape : kShapes)
    for (const auto& [place, bytes] : kPlaces)
      for (const bool backward : {false, true}) {
        const auto ours = collector.speeds.find(name_of("xsa", shape, backward, place));
        const auto plain = collector.speeds.find(name_of("plain", shape, backward, place));
        if (ours == collector.speeds.end() || plain == collector.speeds.end()) continue;
        const auto gigabytes = [](const std::vector<double>& speeds) {
          return xsa::Json{{"q1", quantile(speeds, 0.25) / 1e9},
                           {"median", quantile(speeds, 0.5) / 1e9},
                           {"q3", quantile(speeds, 0.75) / 1e9}};
        };
        const double share = quantile(ours->second, 0.5) / quantile(plain->second, 0.5);
        std::printf("%-44s %10.1f %10.1f %6.0f%%\n", ours->first.c_str() + 4,
                    quantile(ours->second, 0.5) / 1e9, quantile(plain->second, 0.5) / 1e9,
                    100 * share);
        results.push_back({{"direction", backward ? "backward" : "forward"},
                           {"type", shape.name},
                           {"value_dim", shape.value_dim},
                           {"group", shape.group},
                           {"place", place},
                           {"bytes_a_thread", bytes},
                           {"xsa_gigabytes_a_second", gigabytes(ours->second)},
                           {"plain_gigabytes_a_second", gigabytes(plain->second)},
                           {"share", share}});
      }
  xsa::write_json_file(
      out, {{"what",
             "the exclusion alone: its speed as a share of a loop that only reads and writes "
             "the same streams; bytes by a thread's CPU time"},
            {"date", xsa::utc_now()},
            {"commit", xsa::build_commit()},
            {"machine", xsa::machine_info()},
            {"threads", threads},
            {"instruction_set", xsa::kernels::instruction_sets().front()},
            {"results", results}});
}
