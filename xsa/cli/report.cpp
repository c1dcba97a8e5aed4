#include <unistd.h>

#include <cstdio>

#include "xsa/base/json.h"
#include "xsa/cli/command.h"
#include "xsa/report/comparison.h"

namespace xsa::cli {

void report(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.target;
  report::write_report(folder);
  const Json result = read_json_file(folder / "compare.json");
  if (arguments.json) {
    std::printf("%s\n", result.dump(2).c_str());
  } else {
    std::printf("%s\nReport: %s\n",
                report::terminal_table(result, ::isatty(STDOUT_FILENO) == 1).c_str(),
                (folder / "report.html").c_str());
  }
}

}  // namespace xsa::cli
