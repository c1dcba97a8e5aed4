// A figure or a table of the set's page as data: what set.js draws, and its CSV.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"

namespace xsa::report {

/// A curve, points or bars. `low` and `high`, if any, are the ends of error bars.
struct Trace {
  std::string name;
  /// "standard", "exclusive", "margin", or "0", "1", ...: colour, dash, marker. "standard:1" has
  /// another marker.
  std::string style;
  std::vector<Json> x;
  std::vector<double> y, low, high;
  std::string kind = "line";  // or "thin" (no markers), "points" (no line), "bar"
};

struct Panel {
  std::string title, x, y;
  std::vector<Trace> traces;
  std::string scale = "linear";  // or "log" or "category", of x
  bool from_zero = false;
  std::vector<std::vector<double>> heat;  // [layers][heads], in the place of traces
};

/// The style of the i-th of several lines beside those of the attentions, whose colours are 0
/// and 1.
inline std::string line_style(std::size_t i) { return std::to_string(i + 2); }

/// One choice of what a figure shows.
struct View {
  std::string label;
  std::vector<Panel> panels;
};

/// A text, or a number as people read it; a text with a number stands for it.
struct Cell {
  std::string text;
  double value = std::numeric_limits<double>::quiet_NaN();
  int decimals = -1;  // of a number; -1: a text
  bool sign = false;
};

Cell number_cell(double value, int decimals, bool sign = false);
/// "0.031", "< 0.0001"
Cell chance_cell(double p);
std::string shown(const Cell& cell);

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows;
};

struct Figure {
  std::string id;      // of its files: "fig4-rates"
  std::string number;  // "Fig. 4"
  std::string title, source;
  std::string caption;      // what is seen, in one sentence
  std::string paper;        // what the paper says, if anything
  std::vector<View> views;  // empty: a table alone
  std::size_t columns = 3;  // panels side by side
  Table table;
};

/// A figure's data as files of comma-separated values (RFC 4180), by the ends of their names: its
/// panels' as ".csv" and its table as "-table.csv", or ".csv" where it is a table alone.
std::map<std::string, std::string> csvs_of(const Figure& figure);

/// Whether a file with this beginning is some figure's CSV.
bool is_figure_csv(std::string_view beginning);

/// For set.js.
Json to_json(const Figure& figure);

}  // namespace xsa::report
