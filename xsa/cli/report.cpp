#include <cstdio>

#include "xsa/base/json.h"
#include "xsa/cli/command.h"
#include "xsa/report/comparison.h"

namespace xsa::cli {

void report(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.target;
  report::write_report(folder);
  if (arguments.json) {
    std::printf("%s\n", read_json_file(folder / "compare.json").dump(2).c_str());
  } else {
    std::printf("%s\nReport: %s\n",
                report::terminal_table(read_json_file(folder / "compare.json")).c_str(),
                (folder / "report.html").c_str());
  }
}

}  // namespace xsa::cli
