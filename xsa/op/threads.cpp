#include "xsa/op/threads.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include "xsa/base/system.h"

namespace xsa::op {

std::int64_t use_threads(std::int64_t wanted) {
  at::set_num_threads(static_cast<int>(threads_or_default(wanted)));
  int running = 1;
#pragma omp parallel
  {
#pragma omp single
    running = omp_get_num_threads();
  }
  at::set_num_threads(running);
  return running;
}

}  // namespace xsa::op
