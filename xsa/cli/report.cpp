#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/json.h"
#include "xsa/cli/command.h"
#include "xsa/cli/output_file.h"
#include "xsa/report/comparison.h"
#include "xsa/report/html.h"
#include "xsa/report/set.h"

namespace xsa::cli {

constexpr char kReportExamples[] = R"(Examples:
  xsa report runs/demo                                write a comparison's page anew: runs/demo/report.html
  xsa report runs/lengths                             a sweep's page: runs/lengths/report.html
  xsa report runs/ evaluations/ results/block.json    all of them on one page, report.html
  xsa report runs/ --output paper.html --csv figures/

Runs, comparisons, sweeps, evaluations (xsa eval --output), diagnoses (xsa diagnose --file) and block benchmarks
(xsa bench block) are told apart by their content; other folders are looked through for them. The page is one file
with the paper's figures 1 to 6 and Table 2, as far as there are data; each saves as SVG, PNG and CSV.)";

namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> paths;
  std::string output, csv;
  bool json = false, overwrite = false;
};

/// A comparison by itself has a page of its own.
void report_comparison(const fs::path& folder, bool json) {
  report::write_report(folder);
  const Json result = read_json_file(folder / "compare.json");
  if (json) {
    std::printf("%s\n", result.dump(2).c_str());
    return;
  }
  try {
    std::printf("%s\n", report::terminal_table(result, ::isatty(STDOUT_FILENO) == 1).c_str());
  } catch (const Json::exception& error) {
    throw Error(cat((folder / "compare.json").string(), ": expected \"results\" and \"difference\"",
                    " as xsa compare writes them (", error.what(),
                    "); the page is written, the table of this file is damaged"));
  }
  std::printf("Report: %s\n", (folder / "report.html").c_str());
}

fs::path output_of(const ReportOptions& options) {
  if (!options.output.empty()) return options.output;
  const fs::path only = options.paths.size() == 1 ? fs::path(options.paths[0]) : fs::path();
  const bool is_own = fs::exists(only / "sweep.json") || fs::exists(only / "compare.json");
  return options.paths.size() == 1 && is_own ? only / "report.html" : fs::path("report.html");
}

using CsvFiles = std::map<fs::path, std::string>;

/// Pages and CSVs replace pages and CSVs alone. A page that nobody named is one folder's own.
void check_outputs(const ReportOptions& options, const fs::path& output, const CsvFiles& csvs) {
  OutputRule rule{"--output", {}, [](std::string_view beginning) {
                    return report::is_page_of("xsa report", beginning) ||
                           report::is_page_of("xsa compare", beginning);
                  }};
  rule.overwrite = options.overwrite;
  if (!options.output.empty()) rule.inputs.assign(options.paths.begin(), options.paths.end());
  check_output_file(output, rule);
  std::vector<Output> outputs = {{"--output", output}};
  rule.flag = "--csv";
  rule.is_ours = report::is_figure_csv;
  for (const auto& [path, csv] : csvs) {
    outputs.emplace_back("--csv", path);
    check_output_file(path, rule);
  }
  check_distinct(outputs);
}

void run(const ReportOptions& options) {
  if (options.paths.size() == 1 && fs::exists(fs::path(options.paths[0]) / "compare.json") &&
      options.output.empty() && options.csv.empty())
    return report_comparison(options.paths[0], options.json);
  const report::SetReport report = report::read_set({options.paths.begin(), options.paths.end()});
  const report::Parts& parts = report.parts;
  check(!parts.studies.empty() || !report.figures.empty(), "report: nothing to show. ",
        parts.problems.empty() ? "" : parts.problems.front());
  const fs::path output = output_of(options);
  const CsvFiles csvs = options.csv.empty() ? CsvFiles() : report::csv_files(report, options.csv);
  check_outputs(options, output, csvs);
  report::write_set_page(report, output);
  for (const auto& [path, csv] : csvs) atomic_write(path, csv);
  Json result = report::to_json(report);
  for (const Json& problem : result["problems"])
    std::fprintf(stderr, "warning: %s\n", problem.get<std::string>().c_str());
  if (options.json) {
    result["output"] = output.string();
    std::printf("%s\n", result.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  for (const Json& figure : result["figures"])
    std::printf("%-24s%s\n", figure["number"].get<std::string>().c_str(),
                figure["caption"].get<std::string>().c_str());
  std::printf("\nReport: %s\n", output.c_str());
}

}  // namespace

std::function<void()> declare_report(CommandLine& command) {
  command.footer(kReportExamples);
  const auto options = std::make_shared<ReportOptions>();
  command.add_option("paths", options->paths, "folders and JSON files")->required();
  command.add_option(
      "--output", options->output,
      "the page; by default report.html, in a comparison's or sweep's folder if it is "
      "the only one named");
  command.add_option("--csv", options->csv, "also write each figure's data into this folder");
  command.add_flag("--overwrite", options->overwrite,
                   "replace files at --output and --csv that are no page and no CSV of this");
  command.add_flag("--json", options->json, "print the figures' data as JSON to standard output");
  return [options] { run(*options); };
}

}  // namespace xsa::cli
