#include "xsa/report/figure.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

/// Seven digits: more than is seen or meant.
std::string digits(double value) {
  if (!std::isfinite(value)) return "";
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

Json short_number(double value) {
  return std::isfinite(value) ? Json(std::strtod(digits(value).c_str(), nullptr)) : Json(nullptr);
}

Json list_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(short_number(value));
  return list;
}

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  quoted += '"';
  return quoted;
}

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& text : fields) {
    if (&text != &fields[0]) line += ',';
    line += field(text);
  }
  line += "\r\n";
  return line;
}

std::string x_text(const Json& x) {
  if (x.is_number()) return digits(x.get<double>());
  return x.is_string() ? x.get<std::string>() : "";
}

std::string table_csv(const Table& table) {
  std::vector<std::string> head = table.head;
  for (std::size_t i = 1; i < head.size(); ++i)
    if (head[i] == "±") head[i] = head[i - 1] + " ±";  // each column has a name of its own
  std::string csv = line_of(head);
  for (const auto& row : table.rows) {
    std::vector<std::string> fields;
    for (const Cell& cell : row)
      fields.push_back(std::isfinite(cell.value) ? digits(cell.value) : cell.text);
    csv += line_of(fields);
  }
  return csv;
}

double at(const std::vector<double>& values, std::size_t i) {
  return i < values.size() ? values[i] : std::numeric_limits<double>::quiet_NaN();
}

std::string panel_csv(const std::string& view, const Panel& panel) {
  std::string csv;
  for (const Trace& trace : panel.traces)
    for (std::size_t i = 0; i < trace.x.size(); ++i)
      csv += line_of({view, panel.title, trace.name, x_text(trace.x[i]), digits(at(trace.y, i)),
                      digits(at(trace.low, i)), digits(at(trace.high, i))});
  for (std::size_t layer = 0; layer < panel.heat.size(); ++layer)
    for (std::size_t head = 0; head < panel.heat[layer].size(); ++head)
      csv += line_of({view, panel.title, "layer " + std::to_string(layer), std::to_string(head),
                      digits(panel.heat[layer][head]), "", ""});
  return csv;
}

std::string views_csv(const Figure& figure) {
  const Panel& first = figure.views[0].panels.at(0);
  std::string csv = line_of(
      {"view", "panel", "series", first.heat.empty() ? first.x : "head", "value", "low", "high"});
  for (const View& view : figure.views)
    for (const Panel& panel : view.panels) csv += panel_csv(view.label, panel);
  return csv;
}

Json panel_json(const Panel& panel) {
  Json json = {
      {"title", panel.title},    {"x", panel.x},           {"y", panel.y}, {"scale", panel.scale},
      {"zero", panel.from_zero}, {"traces", Json::array()}};
  for (const Trace& trace : panel.traces) {
    Json curve = {{"name", trace.name},
                  {"style", trace.style},
                  {"kind", trace.kind},
                  {"x", trace.x},
                  {"y", list_of(trace.y)}};
    if (!trace.low.empty()) {
      curve["low"] = list_of(trace.low);
      curve["high"] = list_of(trace.high);
    }
    json["traces"].push_back(curve);
  }
  if (!panel.heat.empty()) {
    json["heat"] = Json::array();
    for (const auto& row : panel.heat) json["heat"].push_back(list_of(row));
  }
  return json;
}

}  // namespace

Cell number_cell(double value, int decimals, bool sign) { return {"", value, decimals, sign}; }

Cell chance_cell(double p) {
  if (std::isfinite(p) && p < 1e-4) return {"< 0.0001", p};
  return number_cell(p, 4);
}

std::string shown(const Cell& cell) {
  return cell.decimals < 0 ? cell.text : format_number(cell.value, cell.decimals, cell.sign);
}

std::map<std::string, std::string> csvs_of(const Figure& figure) {
  std::map<std::string, std::string> csvs;
  if (!figure.views.empty()) csvs[".csv"] = views_csv(figure);
  if (!figure.table.rows.empty() || figure.views.empty())
    csvs[figure.views.empty() ? ".csv" : "-table.csv"] = table_csv(figure.table);
  return csvs;
}

bool is_figure_csv(std::string_view beginning) {
  const std::string_view head = beginning.substr(0, beginning.find("\r\n"));
  return head.size() < beginning.size() &&
         (head.starts_with("view,panel,series,") || head.starts_with(",attention,seeds,") ||
          head.starts_with("task,") || head.find(",seeds,standard,") != std::string_view::npos);
}

Json to_json(const Figure& figure) {
  Json json = {{"id", figure.id},           {"number", figure.number},   {"title", figure.title},
               {"source", figure.source},   {"caption", figure.caption}, {"paper", figure.paper},
               {"columns", figure.columns}, {"views", Json::array()}};
  for (const View& view : figure.views) {
    Json panels = Json::array();
    for (const Panel& panel : view.panels) panels.push_back(panel_json(panel));
    json["views"].push_back({{"label", view.label}, {"panels", panels}});
  }
  if (!figure.table.head.empty()) {
    json["table"] = {{"head", figure.table.head}, {"rows", Json::array()}};
    for (const auto& row : figure.table.rows) {
      Json cells = Json::array();
      for (const Cell& cell : row)
        cells.push_back(cell.decimals < 0 && !std::isfinite(cell.value) ? Json(cell.text)
                                                                        : short_number(cell.value));
      json["table"]["rows"].push_back(cells);
    }
  }
  json["csvs"] = csvs_of(figure);
  return json;
}

}  // namespace xsa::report
