#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/tasks/results.h"
#include "xsa/text/case.h"

namespace xsa::tasks {
namespace {

struct Cell {
  std::string text;
  bool number = false;
};
using Row = std::vector<Cell>;

Cell number(double value) { return {fixed(value, 4), true}; }

std::int64_t width_of(const std::string& text) { return text::code_points(text); }

std::string padded(const std::string& text, std::int64_t left, std::int64_t right) {
  std::string cell(static_cast<std::size_t>(left), ' ');
  cell += text;
  cell.append(static_cast<std::size_t>(right), ' ');
  return cell;
}

/// A Markdown table: numbers to the right, texts to the left; a column is marked as one of numbers
/// if it has only such.
std::string markdown(const std::vector<std::string>& headers, const std::vector<Row>& rows) {
  std::string head = "|", line = "|", body;
  std::vector<std::int64_t> widths;
  for (std::size_t c = 0; c < headers.size(); ++c) {
    std::int64_t width = std::max<std::int64_t>(3, width_of(headers[c]));
    bool numbers = true;
    for (const Row& row : rows) {
      width = std::max(width, width_of(row[c].text));
      numbers = numbers && (row[c].number || row[c].text.empty());
    }
    numbers = numbers && !headers[c].empty();
    const std::int64_t space = width - width_of(headers[c]);
    head += padded(headers[c], space / 2, space - space / 2) + "|";
    line += std::string(static_cast<std::size_t>(width - (numbers ? 1 : 0)), '-') +
            (numbers ? ":|" : "|");
    widths.push_back(width);
  }
  for (const Row& row : rows) {
    body += "|";
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::int64_t space = widths[c] - width_of(row[c].text);
      body += (row[c].number ? padded(row[c].text, space, 0) : padded(row[c].text, 0, space)) + "|";
    }
    body += "\n";
  }
  return head + "\n" + line + "\n" + body;
}

std::vector<std::string> sorted_keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// The rows of one task: a metric each, by name; the first alone says task and version.
void add_rows(const Json& summary, const std::string& task, std::vector<Row>& rows) {
  constexpr std::string_view kFilter = ",none";
  const Json& result = summary.at("results").at(task);
  bool first = true;
  for (const std::string& key : sorted_keys(result)) {
    if (!key.ends_with(kFilter) || key.find("_stderr,") != std::string::npos) continue;
    const std::string metric = key.substr(0, key.size() - kFilter.size());
    const Json& error = result.at(metric + "_stderr" + std::string(kFilter));
    const bool higher = summary.at("higher_is_better").at(task).at(metric).get<bool>();
    char version[32];
    std::snprintf(version, sizeof version, "%g", summary.at("versions").at(task).get<double>());
    rows.push_back({{first ? result.at("alias").get<std::string>() : ""},
                    {first ? version : "", first},
                    {"none"},
                    {cat(summary.at("n-shot").at(task).get<int>()), true},
                    {metric},
                    {higher ? "↑" : "↓"},
                    number(result.at(key).get<double>()),
                    {"±"},
                    error.is_number() ? number(error.get<double>()) : Cell{"   N/A"}});
    first = false;
  }
}

/// "average of 3 tasks: 0.4321 (acc of piqa, winogrande; acc_norm of hellaswag)".
std::string average_line(const Json& average) {
  std::string taken;
  for (const char* metric : {"acc", "acc_norm"}) {
    std::string tasks;
    for (const auto& item : average.at("of").items())
      if (item.value() == metric) tasks += (tasks.empty() ? "" : ", ") + item.key();
    if (!tasks.empty()) taken += cat(taken.empty() ? "" : "; ", metric, " of ", tasks);
  }
  return cat("average of ", average.at("of").size(),
             " tasks: ", number(average.at("value").get<double>()).text, " (", taken, ")\n");
}

}  // namespace

std::string results_table(const Json& summary) {
  std::vector<Row> rows;
  for (const std::string& task : sorted_keys(summary.at("results"))) add_rows(summary, task, rows);
  std::string text =
      markdown({"Tasks", "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr"}, rows);
  if (summary.contains("average") && summary.at("average").is_object())
    text.append("\n").append(average_line(summary.at("average")));
  return text;
}

}  // namespace xsa::tasks
