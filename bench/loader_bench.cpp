// Does training wait for its data? A training step is stood in for by a sleep; rows come from token
// shards in random order: from memory, from a disk whose pages the system has dropped, and from a
// source that is slow by itself, each read as they are needed (depth 0) and read ahead. Also what
// an epoch's order costs. Prints a table and writes results/loader.json (--out=FILE, --tokens=N,
// --steps=N; the shards lie in --folder, by default the system's temporary one).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/base/rng.h"
#include "xsa/base/system.h"
#include "xsa/data/loader.h"
#include "xsa/data/read_ahead.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using xsa::Json;

constexpr std::int64_t kContext = 2048, kRows = 32, kVocabulary = 50257;
constexpr auto kStep = 20ms;

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::vector<fs::path> make_shards(const fs::path& folder, std::int64_t tokens) {
  constexpr std::int64_t kShard = 10'000'000;
  std::vector<fs::path> paths;
  xsa::Rng rng(1);
  for (std::int64_t done = 0; done < tokens; done += kShard) {
    std::vector<xsa::text::Token> ids(static_cast<std::size_t>(std::min(kShard, tokens - done)));
    for (auto& id : ids) id = static_cast<xsa::text::Token>(rng.next() % kVocabulary);
    paths.push_back(folder / xsa::cat("train_", paths.size(), ".bin"));
    xsa::data::write_shard(paths.back(), ids);
  }
  return paths;
}

/// Asks the system to forget the files' pages.
void drop_pages(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

/// A source's own time for batch number n.
using Delay = std::function<Clock::duration(std::int64_t n)>;

struct Source {
  const char* name;
  bool cold;
  Delay delay;
};

const std::vector<Source> kSources = {
    {"in memory", false, [](std::int64_t) { return 0ms; }},
    {"cold disk", true, [](std::int64_t) { return 0ms; }},
    {"slow: 15 ms a batch", true, [](std::int64_t) { return 15ms; }},
    {"uneven: every 16th batch 60 ms", true,
     [](std::int64_t n) { return n % 16 == 15 ? 60ms : 0ms; }},
};

/// How long each step waited, in ms; the first step, which has nothing to read ahead of, is left
/// out.
std::vector<double> waits(const std::vector<fs::path>& paths, const Source& source,
                          std::int64_t depth, std::int64_t steps) {
  const xsa::data::TokenStream stream(paths, xsa::data::ShardFormat::kLlmC, kVocabulary);
  xsa::data::TrainLoader loader(stream, kRows, kContext, 1);
  if (source.cold) drop_pages(paths);
  std::int64_t made = 0;
  const auto make = [&] {
    std::this_thread::sleep_for(source.delay(made++));
    std::vector<std::int64_t> inputs(kRows * kContext), targets(kRows * kContext);
    loader.next(inputs, targets);
    return inputs;
  };
  xsa::data::ReadAhead<std::vector<std::int64_t>> batches(make, depth);
  batches.next();
  std::vector<double> result;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::this_thread::sleep_for(kStep);
    const double before = batches.waited_s();
    batches.next();
    result.push_back((batches.waited_s() - before) * 1e3);
  }
  return result;
}

Json measure_waits(const std::vector<fs::path>& paths, std::int64_t steps) {
  Json rows = Json::array();
  std::printf("%-32s %6s %18s %8s %8s\n", "source", "depth", "wait/step: median", "p99", "most");
  for (const Source& source : kSources) {
    for (const std::int64_t depth : {0, 4}) {
      std::vector<double> times = waits(paths, source, depth, steps);
      std::sort(times.begin(), times.end());
      const auto at = [&](double share) {
        return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
      };
      std::printf("%-32s %6lld %15.3f ms %5.2f ms %5.2f ms\n", source.name,
                  static_cast<long long>(depth), at(0.5), at(0.99), at(1));
      rows.push_back({{"source", source.name},
                      {"depth", depth},
                      {"median_ms", at(0.5)},
                      {"p99_ms", at(0.99)},
                      {"most_ms", at(1)}});
    }
  }
  return rows;
}

Json measure_reading(const std::vector<fs::path>& paths, bool cold) {
  const xsa::data::TokenStream stream(paths, xsa::data::ShardFormat::kLlmC, kVocabulary);
  xsa::data::TrainLoader loader(stream, kRows, kContext, 1);
  std::vector<std::int64_t> inputs(kRows * kContext), targets(kRows * kContext);
  if (cold) {
    drop_pages(paths);
  } else {
    for (std::int64_t row = 0; row < loader.rows_per_epoch(); row += kRows)
      loader.next(inputs, targets);
  }
  const auto start = Clock::now();
  std::int64_t rows = 0;
  for (; rows < loader.rows_per_epoch() / 2; rows += kRows) loader.next(inputs, targets);
  const double tokens_per_s =
      static_cast<double>(rows * kContext) / milliseconds(Clock::now() - start) * 1e3;
  std::printf("one thread reads %6.1f M tokens/s, %s\n", tokens_per_s / 1e6,
              cold ? "from a cold disk" : "in memory");
  return tokens_per_s;
}

/// An order of `rows` rows: to begin with, and for each row.
Json measure_order(std::int64_t rows, bool tabled) {
  auto start = Clock::now();
  const xsa::data::RowOrder order(1, 0, rows, tabled ? rows : 0);
  const double begin_ms = milliseconds(Clock::now() - start);
  constexpr std::int64_t kPlaces = 1'000'000;
  std::int64_t sum = 0;
  start = Clock::now();
  for (std::int64_t place = 0; place < kPlaces; ++place) sum += order[place];
  const double row_ns = milliseconds(Clock::now() - start) * 1e6 / kPlaces;
  std::printf("order of %9lld rows, %s: %8.1f ms to begin, %5.0f ns a row%s\n",
              static_cast<long long>(rows), tabled ? "table   " : "no table", begin_ms, row_ns,
              sum < 0 ? "!" : "");
  return {{"rows", rows},
          {"tabled", tabled},
          {"bytes", tabled ? rows * 8 : 0},
          {"begin_ms", begin_ms},
          {"row_ns", row_ns}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::map<std::string, std::string> options = {{"--out", "results/loader.json"},
                                                {"--tokens", "100000000"},
                                                {"--steps", "300"},
                                                {"--folder", fs::temp_directory_path().string()}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    const auto option = options.find(word.substr(0, equals));
    xsa::check_usage(option != options.end() && equals != std::string::npos, "unknown option '",
                     word, "'; there are --out=, --tokens=, --steps= and --folder=");
    option->second = word.substr(equals + 1);
  }
  const std::int64_t tokens = std::atoll(options["--tokens"].c_str());
  const std::int64_t steps = std::max(1ll, std::atoll(options["--steps"].c_str()));
  const fs::path folder = fs::path(options["--folder"]) / xsa::cat("xsa-loader-", ::getpid());
  fs::create_directories(folder);
  Json result;
  try {
    const std::vector<fs::path> paths = make_shards(folder, tokens);
    result["read_tokens_per_s"] = {{"memory", measure_reading(paths, false)},
                                   {"cold_disk", measure_reading(paths, true)}};
    result["waits"] = measure_waits(paths, steps);
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  fs::remove_all(folder);
  result["orders"] = {measure_order(xsa::data::RowOrder::kTabledRows, true),
                      measure_order(49'000'000, true), measure_order(49'000'000, false)};
  Json file = {{"benchmark", "loader"},  {"machine", xsa::machine_info()},
               {"date", xsa::utc_now()}, {"commit", xsa::build_commit()},
               {"tokens", tokens},       {"context", kContext},
               {"batch_rows", kRows},    {"step_ms", milliseconds(kStep)},
               {"steps", steps}};
  file.update(result);
  xsa::write_json_file(options["--out"], file);
  return 0;
} catch (const xsa::Error& error) {
  std::fprintf(stderr, "loader_bench: %s\n", error.what());
  return 1;
}
