#include "xsa/study/compare.h"

#include <unistd.h>

#include <cstdio>

#include "xsa/cli/command.h"
#include "xsa/report/comparison.h"

namespace xsa::cli {

void compare(const Arguments& arguments) {
  const study::Recipe recipe = resolve(arguments);
  if (arguments.dry_run) {
    std::printf("%s\n", study::to_json(recipe).dump(2).c_str());
    return;
  }
  const std::filesystem::path folder = run_folder(arguments);
  const Json result = study::compare(recipe, folder, arguments.overwrite);
  if (arguments.json) {
    std::printf("%s\n", result.dump(2).c_str());
  } else {
    std::printf("\n%s\n%s\n\nReport: %s\n",
                report::terminal_table(result, ::isatty(STDOUT_FILENO) == 1).c_str(),
                result.at("verdict").get<std::string>().c_str(), (folder / "report.html").c_str());
  }
}

}  // namespace xsa::cli
