// One kernel call for valgrind to count; instructions_bench.py runs it and compares the counts.
//
//   instructions_bench forward|backward T D STRENGTH
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/kernel_call.h"

int main(int count, char** arguments) {
  const std::string direction = count == 5 ? arguments[1] : "";
  if (direction != "forward" && direction != "backward") {
    std::fprintf(stderr, "usage: instructions_bench forward|backward T D STRENGTH\n");
    return 2;
  }
  xsa::bench::KernelCall call({.heads = 1,
                               .length = std::atoll(arguments[2]),
                               .dim = std::atoll(arguments[3]),
                               .strength = std::atof(arguments[4])});
  forward(call.params);
  if (direction == "backward") backward(call.params);
}
