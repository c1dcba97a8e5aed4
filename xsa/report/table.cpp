#include "xsa/report/table.h"

#include <algorithm>
#include <cmath>

#include "xsa/base/error.h"
#include "xsa/report/comparison.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

std::string cell(const Json& figure, const Metric& metric, bool sign) {
  const std::string mean =
      format_number(number_at(figure, "mean") * metric.scale, metric.decimals, sign);
  const Json& values = figure.at("values");
  const auto known = std::count_if(values.begin(), values.end(),
                                   [](const Json& value) { return value.is_number(); });
  if (known < 2) return mean;
  return mean + " ± " + format_number(number_at(figure, "spread") * metric.scale, metric.decimals);
}

/// Columns that a terminal shows: code points, as none of ours is wide or combining.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string line_of(const Row& row, const std::array<std::size_t, 5>& widths) {
  std::string line;
  for (std::size_t column = 0; column < row.size(); ++column) {
    const std::string padding(widths[column] - width_of(row[column]), ' ');
    line += column == 0 ? row[column] + padding : "   " + padding + row[column];
  }
  return line;
}

}  // namespace

std::vector<Row> table_rows(const Json& summary) {
  std::vector<Row> rows;
  for (const Metric& metric : kMetrics) {
    const Json& standard = summary.at("results").at("standard").at(metric.key);
    const Json& exclusive = summary.at("results").at("exclusive").at(metric.key);
    const Json& difference = summary.at("difference").at(metric.key);
    const double relative = 100 * number_at(difference, "mean") / number_at(standard, "mean");
    const std::string label =
        *metric.unit == '\0' ? cat(metric.label) : cat(metric.label, " (", metric.unit, ")");
    rows.push_back({label, cell(standard, metric, false), cell(exclusive, metric, false),
                    cell(difference, metric, true),
                    std::isfinite(relative) ? format_number(relative, 1, true) + " %" : "–"});
  }
  return rows;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.at(0).size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      text += i == 0 ? row[i] + padding : "   " + padding + row[i];
    }
    text += "\n";
    if (&row != &rows[0]) continue;
    for (std::size_t i = 0; i < widths.size(); ++i)
      for (std::size_t k = 0; k < widths[i] + (i == 0 ? 0 : 3); ++k) text += "─";
    text += "\n";
  }
  return text;
}

std::string terminal_table(const Json& summary, bool colour) {
  std::vector<Row> rows = table_rows(summary);
  rows.insert(rows.begin(), kTableHead);
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], width_of(row[column]));

  const char* const bold = colour ? "\x1b[1m" : "";
  const char* const dim = colour ? "\x1b[2m" : "";
  const char* const plain = colour ? "\x1b[0m" : "";
  std::string rule;
  for (std::size_t column = 0; column < widths.size(); ++column)
    for (std::size_t i = 0; i < widths[column] + (column == 0 ? 0 : 3); ++i) rule += "─";
  std::string text = cat(dim, line_of(rows[0], widths), plain, "\n", dim, rule, plain, "\n");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const bool first = i == 1;  // the loss that the verdict is about
    text += cat(first ? bold : "", line_of(rows[i], widths), first ? plain : "", "\n");
  }
  return text;
}

}  // namespace xsa::report
