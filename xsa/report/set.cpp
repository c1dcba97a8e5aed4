#include "xsa/report/set.h"

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/report/escape.h"
#include "xsa/report/metrics.h"

namespace xsa::report {

namespace fs = std::filesystem;

void write_set_report(const std::vector<fs::path>& paths, const fs::path& output) {
  std::string html = "<!DOCTYPE html><meta charset=\"utf-8\"><title>xsa</title>\n";
  for (const fs::path& path : paths) {
    check(fs::exists(path), path.string(), ": expected a file or a folder, found none");
    const fs::path sweep = path / "sweep.json";
    if (!fs::exists(sweep)) continue;
    html += "<pre>" + escape_html(sweep_table(read_json_file(sweep), path)) + "</pre>\n";
  }
  atomic_write(output, html);
}

std::string sweep_table(const Json& sweep, const fs::path& folder) {
  std::string text;
  for (const Json& point : sweep.at("points")) {
    const fs::path name = point.at("folder").get<std::string>();
    const bool is_done = point.value("status", "") == "done";
    const double loss =
        is_done ? number_at(read_json_file(folder / name / "summary.json"), "validation_loss")
                : number_at(Json(), "");
    text += cat(name.filename().string(), "   ", point.value("status", ""), "   ",
                format_number(loss, 4), "\n");
  }
  return text;
}

}  // namespace xsa::report
