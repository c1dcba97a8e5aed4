// How Torch-free code runs in parallel: the caller hands it a Parallel. The operator passes one
// made of at::parallel_for (two OpenMP runtimes in one process would oversubscribe); tests and
// Torch-free programs use serial() or threads(n).
#pragma once

#include <cstdint>
#include <functional>

namespace xsa {

/// A bounded team of workers.
struct Parallel {
  /// task(index, worker): `worker` in [0, workers) is never used by two running tasks at once, so
  /// that it may own a workspace.
  using Task = std::function<void(std::int64_t index, std::int64_t worker)>;

  std::int64_t workers = 1;
  /// Runs task for every index in [0, count), lowest index first, each as soon as a worker is free.
  /// Returns when all are done. The first exception of a task is rethrown here.
  std::function<void(std::int64_t count, const Task& task)> run;
};

/// More than any machine that this runs on has cores. Far more end the process: OpenMP cannot start
/// them.
inline constexpr std::int64_t kMostThreads = 4096;

/// One worker: the calling thread.
Parallel serial();

/// `workers` threads, started and joined by each call of run (for tests, benchmarks and long
/// tasks).
Parallel threads(std::int64_t workers);

}  // namespace xsa
