#include "xsa/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "xsa/base/error.h"

namespace xsa {

Parallel serial() {
  return {1, [](std::int64_t count, const Parallel::Task& task) {
            for (std::int64_t index = 0; index < count; ++index) task(index, 0);
          }};
}

Parallel threads(std::int64_t workers) {
  check(workers >= 1, "threads: expected at least 1 worker, got ", workers);
  auto run = [workers](std::int64_t count, const Parallel::Task& task) {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr first_error;
    std::mutex error_mutex;
    auto work = [&](std::int64_t worker) {
      try {
        for (std::int64_t index; (index = next.fetch_add(1)) < count;) task(index, worker);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!first_error) first_error = std::current_exception();
        next = count;
      }
    };
    std::vector<std::jthread> team;
    for (std::int64_t worker = 1; worker < std::min(workers, count); ++worker)
      team.emplace_back(work, worker);
    work(0);
    team.clear();
    if (first_error) std::rethrow_exception(first_error);
  };
  return {workers, run};
}

}  // namespace xsa
