#include "xsa/report/set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/report/escape.h"
#include "xsa/report/figures.h"
#include "xsa/report/html.h"
#include "xsa/report/margin_figures.h"
#include "xsa/report/metrics.h"
#include "xsa/report/parts.h"
#include "xsa/report/table.h"

namespace xsa::report {

extern const std::string_view kEmbedded_set_html, kEmbedded_set_js;

namespace {

namespace fs = std::filesystem;

/// `end`: of the name of the file that it saves.
std::string button(const char* end, const char* label, std::size_t figure) {
  return element("button", label,
                 cat("type=\"button\" data-save=\"", end, "\" data-figure=\"", figure, "\""));
}

std::string plot_html(const Figure& figure, std::size_t index) {
  std::string html = "<figure class=\"card\"><div class=\"tools\">";
  if (figure.views.size() > 1) {
    html += cat("<select data-figure=\"", index, "\" aria-label=\"what is shown\">");
    for (std::size_t i = 0; i < figure.views.size(); ++i)
      html += element("option", figure.views[i].label, cat("value=\"", i, "\""));
    html += "</select>";
  } else {
    html += "<span class=\"fill\"></span>";
  }
  html +=
      button(".svg", "SVG", index) + button(".png", "PNG", index) + button(".csv", "CSV", index);
  return html + cat("</div><div id=\"plot-", index, "\"></div></figure>");
}

std::string table_html(const Figure& figure, std::size_t index) {
  const auto is_paper = [&](std::size_t column) {
    return figure.table.head[column].starts_with("paper");
  };
  const char* const end = figure.views.empty() ? ".csv" : "-table.csv";
  std::string html =
      "<div class=\"card numbers\"><div class=\"tools\">" + button(end, "CSV", index) + "</div>";
  html += "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t i = 0; i < figure.table.head.size(); ++i)
    html += element("th", figure.table.head[i],
                    is_paper(i) ? "scope=\"col\" class=\"paper\"" : "scope=\"col\"");
  html += "</tr></thead><tbody>";
  for (const auto& row : figure.table.rows) {
    html += row[0].text.starts_with("average") ? "<tr class=\"last\">" : "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += i == 0 ? element("th", shown(row[i]), "scope=\"row\"")
                     : element("td", shown(row[i]), is_paper(i) ? "class=\"paper\"" : "");
    html += "</tr>";
  }
  return html + "</tbody></table></div></div>";
}

std::string figure_html(const Figure& figure, std::size_t index, const std::string& title) {
  std::string html = cat("<section id=\"", figure.id, "\">");
  html += element(
      "h2", figure.number + " · " + figure.title +
                (figure.source.empty() || figure.source == title ? "" : " – " + figure.source));
  html += element("p", figure.caption, "class=\"seen\"");
  if (!figure.views.empty()) html += plot_html(figure, index);
  if (!figure.table.rows.empty()) html += table_html(figure, index);
  if (!figure.paper.empty()) html += element("p", figure.paper, "class=\"quiet\"");
  return html + "</section>\n";
}

std::string problems_html(const Parts& parts) {
  std::string items;
  for (const std::string& problem : parts.problems) items += element("li", problem);
  for (const Study& study : parts.studies)
    for (const std::string& point : study.points) items += element("li", study.name + ": " + point);
  return items.empty() ? ""
                       : "<div class=\"notice\">Left out, as missing, damaged or not done:<ul "
                         "class=\"problems\">" +
                             items + "</ul></div>";
}

std::string runs_html(const Parts& parts) {
  std::string html;
  for (const Study& study : parts.studies)
    for (const Group& group : study.groups)
      for (const std::string_view attention : kAttentions)
        for (const Run& run : group.runs(attention)) {
          const Json& summary = run.record.summary;
          const auto figure = [&](const char* key, int decimals, double scale = 1) {
            return element("td", format_number(number_at(summary, key) * scale, decimals));
          };
          const auto text = [&](const Json& json, const char* key) {
            return element("td", json.is_object() && json.contains(key) ? text_of(json[key]) : "–");
          };
          const Json machine =
              summary.is_object() ? summary.value("machine", Json::object()) : Json::object();
          html += "<tr>" + element("th", study.name, "scope=\"row\"") +
                  element("td", name_of(group.labels)) + element("td", shown_attention(attention)) +
                  element("td", std::to_string(run.record.seed)) + figure("validation_loss", 4) +
                  figure("train_loss", 4) + figure("tokens_per_s", 0) +
                  figure("peak_tensor_bytes", 1, 1.0 / (1 << 20)) + text(machine, "cpu") +
                  text(summary, "date") + text(summary, "commit") + "</tr>";
        }
  return html;
}

std::size_t count_runs(const Parts& parts) {
  std::size_t runs = 0;
  for (const Study& study : parts.studies)
    for (const Group& group : study.groups) runs += group.standard.size() + group.exclusive.size();
  return runs;
}

std::string counted(std::size_t count, const std::string& what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

std::string lead_of(const Parts& parts, const std::vector<Figure>& figures) {
  std::string lead = counted(count_runs(parts), "run");
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) lead += ", " + counted(count, what);
  };
  add(parts.evaluations.size(), "evaluation");
  add(parts.diagnoses.size(), "diagnosis file");
  add(parts.blocks.size(), "block benchmark");
  std::string numbers;
  for (const Figure& figure : figures)
    if (const std::string number = figure.number.substr(0, figure.number.find(','));
        numbers.find(number) == std::string::npos)
      numbers += (numbers.empty() ? "" : ", ") + number;
  return lead + (numbers.empty() ? "; nothing to show yet." : ". Shown: " + numbers + ".");
}

/// Which of the paper's figures lack data here, and what makes these.
std::string missing_of(const std::vector<Figure>& figures) {
  constexpr std::array<std::pair<const char*, const char*>, 7> kMakers = {{
      {"Fig. 1", "xsa diagnose"},
      {"Fig. 2", "xsa bench block"},
      {"Fig. 3", "xsa compare, xsa sweep"},
      {"Table 2", "xsa eval --output"},
      {"Fig. 4", "xsa sweep"},
      {"Fig. 5", "xsa sweep"},
      {"Fig. 6", "xsa sweep"},
  }};
  std::string missing;
  for (const auto& [number, maker] : kMakers)
    if (std::none_of(figures.begin(), figures.end(), [&, number = number](const Figure& figure) {
          return figure.number == number;
        }))
      missing += cat(missing.empty() ? "" : "; ", number, " (", maker, ")");
  return missing.empty() ? "" : "No data here for: " + missing + ".";
}

std::string title_of(const Parts& parts) {
  if (parts.studies.size() == 1 && !parts.studies[0].is_loose)
    return parts.studies[0].title.empty() ? parts.studies[0].name : parts.studies[0].title;
  return "XSA against standard attention";
}

/// A row a setting, also one that has runs of one attention alone.
Table pairs_table(const Study& study) {
  const auto loss_cell = [](const BySeed& losses) -> Cell {
    const Margin figures = margin_of(values_of(losses));
    const std::string mean = format_number(figures.mean, 4);
    return {losses.size() < 2 ? mean : mean + " ± " + format_number(figures.spread, 4)};
  };
  Table table{{"", "seeds", "standard", "XSA", "margin", "95 % from", "to"}, {}};
  for (const Group& group : study.groups) {
    const BySeed standard = final_losses(group.standard), exclusive = final_losses(group.exclusive);
    const Margin margin = margin_between(standard, exclusive);
    const std::size_t seeds = std::max(standard.size(), exclusive.size());
    table.rows.push_back({{name_of(group.labels)},
                          number_cell(static_cast<double>(seeds), 0),
                          loss_cell(standard),
                          loss_cell(exclusive),
                          number_cell(margin.mean, 4, true),
                          number_cell(margin.mean - margin.half, 4, true),
                          number_cell(margin.mean + margin.half, 4, true)});
  }
  return table;
}

}  // namespace

SetReport read_set(const std::vector<fs::path>& paths) {
  SetReport report;
  report.parts = read_parts(paths);
  report.figures = figures_of(report.parts);
  return report;
}

Json to_json(const SetReport& report) {
  Json figures = Json::array(), problems = report.parts.problems;
  for (const Figure& figure : report.figures) figures.push_back(to_json(figure));
  for (const Study& study : report.parts.studies)
    for (const std::string& point : study.points) problems.push_back(study.name + ": " + point);
  return {{"problems", problems}, {"figures", figures}};
}

std::string render_set(const SetReport& report, std::string_view plotly_js) {
  const std::string plain_title = title_of(report.parts), title = escape_html(plain_title);
  std::string figures;
  for (std::size_t i = 0; i < report.figures.size(); ++i)
    figures += figure_html(report.figures[i], i, plain_title);
  const std::string lead = escape_html(lead_of(report.parts, report.figures));
  const std::string problems = problems_html(report.parts), runs = runs_html(report.parts);
  const std::string missing =
      report.parts.is_one_study() ? "" : escape_html(missing_of(report.figures));
  const std::string note = escape_html(kMarginNote);
  const std::string data = script_json(to_json(report)["figures"]);
  const std::string main = fill(kEmbedded_set_html, {{"title", title},
                                                     {"lead", lead},
                                                     {"problems", problems},
                                                     {"missing", missing},
                                                     {"figures", figures},
                                                     {"note", note},
                                                     {"runs", runs}});
  const std::string whole_title = title + " – the figures of Exclusive Self Attention";
  return render({"xsa report", whole_title, main, data, kEmbedded_set_js, plotly_js});
}

void write_set_page(const SetReport& report, const fs::path& output) {
  atomic_write(output, render_set(report, read_plotly()));
}

void write_set_report(const std::vector<fs::path>& paths, const fs::path& output) {
  write_set_page(read_set(paths), output);
}

std::map<fs::path, std::string> csv_files(const SetReport& report, const fs::path& folder) {
  std::map<fs::path, std::string> files;
  for (const Figure& figure : report.figures)
    for (const auto& [end, csv] : csvs_of(figure)) files[folder / (figure.id + end)] = csv;
  return files;
}

std::string sweep_table(const Json& sweep, const fs::path& folder) {
  std::vector<std::string> problems;
  const Study study = read_sweep(sweep, folder, problems);
  const Table table =
      without_unknown(pairs_of(study).empty() ? variants_table(study) : pairs_table(study));
  std::vector<std::vector<std::string>> rows = {table.head};
  for (const auto& cells : table.rows) {
    rows.emplace_back();
    for (const Cell& cell : cells) rows.back().push_back(shown(cell));
  }
  std::string text = aligned(rows);
  for (const auto& list : {study.points, problems})
    for (const std::string& line : list) text += line + "\n";
  return text;
}

}  // namespace xsa::report
