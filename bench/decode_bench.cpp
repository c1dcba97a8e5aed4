// Decoding, one query a sequence against its cache, beside a plain read of the same bytes by the
// same threads: what the memory allows. Both take turns, so that a busy machine slows both alike;
// the share is read time / decode time within a round. Results are held to the double reference
// after timing.
//
//   decode_bench [--rounds N] [--threads N] [--cache-mib N] [--output FILE]
//
// --cache-mib is the machine's last-level cache, by default what the system says; the large caches
// are four times that, at most 2 GiB.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/base/parallel.h"
#include "xsa/base/rng.h"
#include "xsa/base/system.h"
#include "xsa/kernels/attention.h"

namespace {

using xsa::kernels::AttentionParams;
using xsa::kernels::Type;

/// Threads that stay: a call of a millisecond must not pay for starting them.
class Team {
 public:
  explicit Team(std::int64_t workers) : barrier_(workers) {
    parallel_.workers = workers;
    parallel_.run = [this](std::int64_t count, const xsa::Parallel::Task& task) {
      count_ = count, task_ = &task, next_ = 0;
      barrier_.arrive_and_wait();
      work(0);
      barrier_.arrive_and_wait();
    };
    for (std::int64_t worker = 1; worker < workers; ++worker)
      threads_.emplace_back([this, worker] {
        for (;;) {
          barrier_.arrive_and_wait();
          if (!task_) return;
          work(worker);
          barrier_.arrive_and_wait();
        }
      });
  }
  ~Team() {
    task_ = nullptr;
    barrier_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  const xsa::Parallel& parallel() const { return parallel_; }

 private:
  void work(std::int64_t worker) {
    for (std::int64_t n; (n = next_++) < count_;) (*task_)(n, worker);
  }
  std::barrier<> barrier_;
  xsa::Parallel parallel_;
  std::int64_t count_ = 0;
  const xsa::Parallel::Task* task_ = nullptr;
  std::atomic<std::int64_t> next_{0};
  std::vector<std::thread> threads_;
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
std::uint64_t
sum_of(const std::uint64_t* words, std::int64_t count) {
  std::uint64_t sum = 0;
  for (std::int64_t n = 0; n < count; ++n) sum += words[n];
  return sum;
}

struct Case {
  std::int64_t query_heads, key_heads, dim;
  Type type;
  bool token_major;    // [B, S, K, D], else [B, K, S, D]
  std::int64_t bytes;  // of k and v together

  std::int64_t element_size() const { return type == Type::kFloat32 ? 4 : 2; }
  std::int64_t keys() const { return bytes / (2 * key_heads * dim * element_size()); }
};

/// One query against k and v, each half of `cache`.
class Problem {
 public:
  Problem(const Case& test, std::vector<std::uint64_t>& cache, const xsa::Parallel& parallel)
      : q_(test.query_heads * test.dim), z_(q_.size()), rows_(2 * test.query_heads) {
    xsa::Rng rng(1);
    std::vector<float> pattern(1 << 18);
    for (float& value : pattern) value = static_cast<float>(rng.normal());
    const bool half = test.type == Type::kBFloat16;
    const std::vector<std::uint16_t> halves = truncated(pattern);
    const char* from = half ? reinterpret_cast<const char*>(halves.data())
                            : reinterpret_cast<const char*>(pattern.data());
    const std::int64_t period = (half ? 2 : 4) * (static_cast<std::int64_t>(pattern.size()) - 8);
    const std::int64_t keys = test.keys(), all = 2 * keys * test.key_heads * test.dim;
    char* to = reinterpret_cast<char*>(cache.data());
    for (std::int64_t at = 0, end = all * test.element_size(); at < end; at += period)
      std::memcpy(to + at, from, std::min(period, end - at));
    std::memcpy(q_.data(), from, q_.size() * test.element_size());

    const std::int64_t heads = test.key_heads, dim = test.dim;
    params.batch = 1, params.query_heads = test.query_heads, params.key_heads = heads;
    params.queries = 1, params.keys = keys, params.head_dim = params.value_dim = dim;
    params.type = test.type, params.is_causal = true, params.own_offset = keys - 1;
    params.scale = 1 / std::sqrt(static_cast<double>(dim));
    params.q = {q_.data(), {0, dim, dim, 1}};
    params.k.data = to, params.v.data = to + all / 2 * test.element_size();
    params.k.stride = test.token_major ? std::array<std::int64_t, 4>{0, dim, heads * dim, 1}
                                       : std::array<std::int64_t, 4>{0, keys * dim, dim, 1};
    params.v.stride = params.k.stride;
    params.z = {z_.data(), {0, dim, dim, 1}};
    params.lse = rows_.data(), params.c = rows_.data() + test.query_heads;
    params.parallel = &parallel;
  }

  /// The largest error of z, less what its rounding may be.
  double error() const {
    const std::vector<double> expected = reference_forward(params).z;
    double largest = 0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
      float z = z_[n];
      if (params.type == Type::kBFloat16) {
        const std::uint32_t bits =
            std::uint32_t{reinterpret_cast<const std::uint16_t*>(z_.data())[n]} << 16;
        std::memcpy(&z, &bits, sizeof z);
      }
      const double rounding = params.type == Type::kBFloat16 ? std::ldexp(expected[n], -8) : 0;
      const double error = std::abs(z - expected[n]) - std::abs(rounding);
      if (!(error <= largest)) largest = error;
    }
    return largest;
  }

  AttentionParams params;

 private:
  static std::vector<std::uint16_t> truncated(const std::vector<float>& values) {
    std::vector<std::uint16_t> halves;
    for (const float value : values) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      halves.push_back(static_cast<std::uint16_t>(bits >> 16));
    }
    return halves;
  }
  std::vector<float> q_, z_, rows_;
};

double seconds(const auto& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

xsa::Json quartiles(const std::vector<double>& values) {
  return {{"q1", quantile(values, 0.25)},
          {"median", quantile(values, 0.5)},
          {"q3", quantile(values, 0.75)}};
}

xsa::Json measure(const Case& test, std::vector<std::uint64_t>& cache, Team& team, int rounds) {
  Problem problem(test, cache, team.parallel());
  const std::int64_t words = test.bytes / 8, piece = std::int64_t{1} << 16;
  std::vector<std::uint64_t> sums(team.parallel().workers);
  const auto read = [&] {
    team.parallel().run((words + piece - 1) / piece, [&](std::int64_t n, std::int64_t worker) {
      sums[worker] += sum_of(cache.data() + n * piece, std::min(piece, words - n * piece));
    });
  };
  const auto decode = [&] { forward(problem.params); };
  std::vector<double> reads, decodes, shares;
  for (int round = -2; round < rounds; ++round) {
    const bool read_first = round % 2 == 0;
    const double first = read_first ? seconds(read) : seconds(decode);
    const double second = read_first ? seconds(decode) : seconds(read);
    if (round < 0) continue;
    reads.push_back(read_first ? first : second);
    decodes.push_back(read_first ? second : first);
    shares.push_back(reads.back() / decodes.back());
  }
  const double error = problem.error();
  const double bytes = static_cast<double>(test.bytes);
  const double read_s = quantile(reads, 0.5), decode_s = quantile(decodes, 0.5);
  std::printf(
      "%2lld/%2lld heads  D %3lld  %-8s  %-11s %5.0f MiB %8lld keys   %8.1f tokens/s  "
      "%5.1f GB/s  read %5.1f GB/s  share %.2f (%.2f-%.2f)\n",
      static_cast<long long>(test.query_heads), static_cast<long long>(test.key_heads),
      static_cast<long long>(test.dim), test.type == Type::kFloat32 ? "float32" : "bfloat16",
      test.token_major ? "[B,S,H,D]" : "[B,H,S,D]", bytes / 1048576,
      static_cast<long long>(test.keys()), 1 / decode_s, bytes / decode_s / 1e9,
      bytes / read_s / 1e9, quantile(shares, 0.5), quantile(shares, 0.25), quantile(shares, 0.75));
  std::fflush(stdout);
  if (!(error < 1e-4)) {
    std::fprintf(stderr, "decode_bench: z is off by %g\n", error);
    std::exit(1);
  }
  return {{"query_heads", test.query_heads},
          {"key_heads", test.key_heads},
          {"head_dim", test.dim},
          {"dtype", test.type == Type::kFloat32 ? "float32" : "bfloat16"},
          {"layout", test.token_major ? "[B,S,H,D]" : "[B,H,S,D]"},
          {"keys", test.keys()},
          {"cache_bytes", test.bytes},
          {"tokens_per_second", 1 / decode_s},
          {"decode_bytes_per_second", bytes / decode_s},
          {"read_bytes_per_second", bytes / read_s},
          {"share_of_read", quartiles(shares)},
          {"largest_error", error}};
}

std::int64_t last_level_cache() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return std::int64_t{32} << 20;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options{
      {"--rounds", "15"},
      {"--threads", std::to_string(xsa::default_threads())},
      {"--cache-mib", std::to_string(last_level_cache() >> 20)},
      {"--output", ""}};
  for (int n = 1; n < argc; n += 2) {
    const auto option = options.find(argv[n]);
    if (option == options.end() || n + 1 == argc) {
      std::fprintf(stderr,
                   "decode_bench: expected [--rounds N] [--threads N] [--cache-mib N] "
                   "[--output FILE], got '%s'\n",
                   argv[n]);
      return 2;
    }
    option->second = argv[n + 1];
  }
  const int rounds = std::max(1, std::atoi(options["--rounds"].c_str()));
  const std::int64_t threads = std::max(1, std::atoi(options["--threads"].c_str()));
  const std::int64_t llc = std::max(1, std::atoi(options["--cache-mib"].c_str()));
  const std::int64_t large = std::min<std::int64_t>(4 * llc, 2048) << 20;
  const std::int64_t small = std::min<std::int64_t>(32, (llc + 1) / 2) << 20;

  Team team(threads);
  std::vector<std::uint64_t> cache(large / 8);
  xsa::Json results = xsa::Json::array();
  for (const std::int64_t bytes : {small, large})
    for (const bool token_major : {false, true})
      for (const Type type : {Type::kFloat32, Type::kBFloat16})
        for (const auto& [query_heads, key_heads, dim] :
             {std::array<std::int64_t, 3>{12, 12, 64}, {32, 8, 128}}) {
          Case test{query_heads, key_heads, dim, type, token_major, bytes};
          const std::int64_t key = 2 * key_heads * dim * test.element_size();
          test.bytes = bytes / key * key;
          results.push_back(measure(test, cache, team, rounds));
        }
  if (options["--output"].empty()) return 0;
  xsa::write_json_file(
      options["--output"],
      {{"what", "CPU decoding, one query: read time / decode time within a round"},
       {"date", xsa::utc_now()},
       {"commit", xsa::build_commit()},
       {"machine", xsa::machine_info()},
       {"setting", {{"threads", threads}, {"last_level_cache_mib", llc}, {"rounds", rounds}}},
       {"results", results}});
}
