// The choice of an instruction set, by call and by environment. The environment is read once a
// process, so each case is a process of its own: GoogleTest's "threadsafe" death tests start this
// program again.
#include "xsa/kernels/cpu/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "xsa/base/error.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {
namespace {

/// Runs one forward and backward, prints the instruction set that did it, and ends as a program
/// with an error text would.
[[noreturn]] void run_and_exit() {
  int code = 0;
  try {
    testing::Problem problem(sized(20, 20, 8, 8));
    forward(problem.params());
    backward(problem.params());
    std::fprintf(stderr, "used %s", cpu::chosen_kernels().name);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s", error.what());
    code = 2;
  }
  std::exit(code);
}

/// XSA_ISA for a scope.
class Environment {
 public:
  explicit Environment(const std::string& value) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("XSA_ISA", value.c_str(), 1);
  }
  ~Environment() { unsetenv("XSA_ISA"); }
};

TEST(XsaIsa, ConfinesAProcessToEachInstructionSetOfTheMachine) {
  for (const std::string& name : instruction_sets()) {
    const Environment environment(name);
    EXPECT_EXIT(run_and_exit(), ::testing::ExitedWithCode(0), "used " + name);
  }
}

TEST(XsaIsa, TakesTheBestWhereItIsEmpty) {
  const Environment environment("");
  EXPECT_EXIT(run_and_exit(), ::testing::ExitedWithCode(0), "used " + instruction_sets().front());
}

TEST(XsaIsa, IsAnErrorAndNoAbortWhereTheMachineLacksIt) {
  for (const char* name : {"MMX", "avx2", "AVX2 "}) {
    const Environment environment(name);
    EXPECT_EXIT(run_and_exit(), ::testing::ExitedWithCode(2),
                "XSA_ISA: expected one of this machine's instruction sets \\(.*" +
                    instruction_sets().back() + "\\), got '" + name + "'");
  }
}

TEST(InstructionSets, AreAllTestedHere) {
#if defined(__x86_64__)
  const std::vector<std::string> here = instruction_sets();
  for (const auto& [name, what] : {std::pair("AVX2", "AVX2"), std::pair("AVX3", "AVX-512")})
    if (std::ranges::find(here, name) == here.end()) GTEST_SKIP() << "this machine has no " << what;
#else
  GTEST_SKIP() << "this machine is no x86-64 processor";
#endif
}

TEST(ChooseInstructionSet, RefusesANameThatTheMachineLacks) {
  EXPECT_THROW(choose_instruction_set("MMX"), UsageError);
  EXPECT_GE(instruction_sets().size(), 1u);
}

TEST(ChooseInstructionSet, ConfinesTheProcess) {
  for (const std::string& name : instruction_sets()) {
    choose_instruction_set(name);
    EXPECT_EQ(cpu::chosen_kernels().name, name);
  }
  choose_instruction_set("");
  EXPECT_EQ(cpu::chosen_kernels().name, instruction_sets().front());
}

}  // namespace
}  // namespace xsa::kernels
