// The program: xsa COMMAND ... Every error ends here, as one text and an exit code.
#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/signals.h"
#include "xsa/base/standard_streams.h"
#include "xsa/cli/arguments.h"
#include "xsa/cli/brief_waits.h"
#include "xsa/cli/command.h"

int main(int argc, char** argv) {
  const auto fail = [](const char* text, int exit_code) {
    std::fprintf(stderr, "xsa: %s\n", text);
    return exit_code;
  };
  xsa::hold_standard_streams();
  xsa::cli::wait_briefly("xsa");
  try {
    const xsa::cli::Invocation invocation =
        xsa::cli::parse(std::vector<std::string>(argv + 1, argv + argc));
    if (!invocation.command) {
      std::fputs(invocation.text.c_str(), stdout);
      xsa::cli::flush_standard_output();
      return invocation.exit_code;
    }
    xsa::install_stop_handlers();
    invocation.command(invocation.arguments);
    xsa::cli::flush_standard_output();
    return 0;
  } catch (const xsa::UsageError& error) {
    return fail(error.what(), 2);
  } catch (const xsa::Interrupted& error) {
    return fail(error.what(), error.exit_code());
  } catch (const c10::Error& error) {
    std::string text = error.what_without_backtrace();
    if (text.find("can't allocate memory") != std::string::npos)
      text = "not enough memory; lower the batch or the model's sizes (" + text + ")";
    return fail(text.c_str(), 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}
