// The page: page.html with its {{places}} filled. All text from files is escaped here.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/report/comparison.h"
#include "xsa/report/curves.h"
#include "xsa/report/diagnosis.h"
#include "xsa/report/escape.h"
#include "xsa/report/html.h"
#include "xsa/report/judge.h"
#include "xsa/report/metrics.h"
#include "xsa/report/recipe.h"
#include "xsa/report/table.h"

namespace xsa::report {

extern const std::string_view kEmbedded_page_html, kEmbedded_page_js;

namespace {

namespace fs = std::filesystem;

std::string text_at(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) ? text_of(json[key]) : "–";
}

/// The spread apart, so that a phone can show it below.
std::string figure_html(const std::string& cell) {
  const std::size_t spread = std::min(cell.find(" ± "), cell.size());
  std::string html = escape_html(cell.substr(0, spread));
  if (spread < cell.size()) html.append(" ").append(element("small", cell.substr(spread + 1)));
  return html;
}

std::string table_html(const Json& summary) {
  std::string html = "<thead><tr>";
  for (const std::string& name : kTableHead)
    html += element("th", shown_attention(name), "scope=\"col\"");
  html += "</tr></thead><tbody>";
  for (const Row& row : table_rows(summary)) {
    html += "<tr>" + element("th", row[0], "scope=\"row\"");
    for (std::size_t i = 1; i < row.size(); ++i) html += "<td>" + figure_html(row[i]) + "</td>";
    html += "</tr>";
  }
  return html + "</tbody>";
}

std::string tile(std::string_view figure, std::string_view label) {
  return "<div class=\"tile\">" + element("b", figure) + element("span", label) + "</div>";
}

std::string tiles_html(const Json& summary) {
  const auto mean = [&](const Json& figures, const char* key) {
    return number_at(figures.at(key), "mean");
  };
  const Json& difference = summary.at("difference");
  const auto percent = [&](double share) {
    return std::isfinite(share) ? format_number(100 * share, 1, true) + " %" : "–";
  };
  const auto relative = [&](const char* key) {
    return percent(mean(difference, key) / mean(summary.at("results").at("standard"), key));
  };
  const double loss = mean(difference, "validation_loss");
  return tile(format_number(loss, 4, true), "validation loss, nats/token") +
         tile(percent(std::expm1(loss)), "validation perplexity") +
         tile(relative("tokens_per_s"), "training speed") +
         tile(relative("peak_tensor_bytes"), "peak tensor memory");
}

/// "836,864 parameters · 300 steps · 921,600 tokens a run · 1 seed"
std::string setting(const Comparison& comparison, const Json& summary) {
  const Run& run = comparison.runs[0];
  const auto count = [&](const char* key) {
    return format_number(number_at(run.record.summary, key), 0);
  };
  const std::size_t seeds = summary.at("difference").at("validation_loss").at("values").size();
  return cat(count("parameters"), " parameters · ", count("steps"), " steps · ", count("tokens"),
             " tokens a run · ", seeds, seeds == 1 ? " seed" : " seeds");
}

std::string diagnosed(const std::vector<Run>& runs) {
  std::vector<const Json*> diagnoses;
  for (const Run& run : runs)
    if (run.record.diagnose.is_object()) diagnoses.push_back(&run.record.diagnose);
  if (diagnoses.empty()) return "Cosines and attention were not measured.";
  return cat("Cosines and attention are means over layers, heads, tokens and ",
             sequences_text(diagnoses), ".");
}

/// By the strengths that were measured: those of layers without an exclusion are 0.
std::string exclusion_text(const std::vector<Run>& runs) {
  double least = INFINITY, most = -INFINITY;
  for (const Run& run : runs) {
    if (run.record.attention != "exclusive" || !run.record.diagnose.is_object()) continue;
    for (const Json& layer : run.record.diagnose.at("layers")) {
      const double strength = number_at(layer, "strength");
      if (!std::isfinite(strength)) continue;
      least = std::min(least, strength);
      most = std::max(most, strength);
    }
  }
  if (most < least || (least == 1 && most == 1))
    return "the exclusion removes the own value’s direction";
  return cat("the exclusion removes ", format_number(least, 2),
             least == most ? "" : cat(" to ", format_number(most, 2)),
             " of the share along the own value’s direction, layer by layer");
}

/// "fma, avx2" of a list of texts.
std::string list_text(const Json& json) {
  if (!json.is_array()) return text_of(json);
  std::string text;
  for (const Json& item : json) text += (text.empty() ? "" : ", ") + text_of(item);
  return text;
}

std::string recipe_html(const std::vector<Setting>& settings) {
  std::string html;
  for (const Setting& setting : settings) {
    html += setting.differs ? "<tr class=\"differs\">" : "<tr>";
    html += element("th", setting.key, "scope=\"row\"");
    if (setting.differs) {
      html += element("td", setting.standard) + element("td", setting.exclusive);
    } else {
      html += element("td", setting.standard, "colspan=\"2\"");
    }
    html += "</tr>";
  }
  return html;
}

/// A warning where more than the attention differs: the verdict is then not about XSA alone.
std::string notice_html(const std::vector<Setting>& settings) {
  std::string others;
  for (const Setting& setting : settings)
    if (setting.differs && setting.key != "model.attention")
      others += (others.empty() ? "" : ", ") + setting.key;
  if (others.empty()) return "";
  return element(
      "p", "The two recipes also differ in " + others + ": the verdict is not about XSA alone.",
      "class=\"notice\"");
}

std::string runs_html(const std::vector<Run>& runs) {
  std::string html;
  for (const Run& run : runs) {
    const Json& summary = run.record.summary;
    const auto figure = [&](const char* key, int decimals, double scale = 1) {
      return element("td", format_number(number_at(summary, key) * scale, decimals));
    };
    html += "<tr>" + element("th", shown_attention(run.record.attention), "scope=\"row\"") +
            element("td", std::to_string(run.record.seed)) + figure("validation_loss", 4) +
            figure("bits_per_byte", 4) + figure("train_loss", 4) + figure("tokens_per_s", 0) +
            figure("peak_tensor_bytes", 1, 1.0 / (1 << 20)) + figure("elapsed_s", 1) +
            element("td", run.record.folder.filename().string(), "class=\"path\"") + "</tr>";
  }
  return html;
}

std::string fact(std::string_view name, std::string_view value) {
  return element("dt", name) + element("dd", value);
}

std::string machine_html(const Comparison& comparison) {
  const Json& info = comparison.info;
  std::string html = fact("date", text_at(info, "date")) + fact("commit", text_at(info, "commit"));
  const Json machine = info.value("machine", Json::object());
  if (!machine.is_object()) return html;
  for (const auto& [key, value] : machine.items()) {
    if (key == "memory_bytes" && value.is_number()) {
      html += fact("memory", format_number(value.get<double>() / (1 << 30), 1) + " GiB");
    } else {
      std::string name = key;
      std::replace(name.begin(), name.end(), '_', ' ');
      html += fact(name, list_text(value));
    }
  }
  return html + fact("threads", text_at(comparison.runs[0].record.summary, "threads"));
}

std::string badge_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kLower:
      return element("span", "XSA ahead", "class=\"badge exclusive\"");
    case Outcome::kHigher:
      return element("span", "standard ahead", "class=\"badge standard\"");
    case Outcome::kUndecided:
      return element("span", "undecided", "class=\"badge\"");
    case Outcome::kNoDifference:
      return element("span", "a tie", "class=\"badge\"");
    case Outcome::kUnknown:
      return element("span", "no figures", "class=\"badge\"");
  }
  throw Error("report: unknown outcome");
}

}  // namespace

std::string render_page(const Comparison& comparison, std::string_view plotly_js) {
  std::vector<RunRecord> records;
  for (const Run& run : comparison.runs) records.push_back(run.record);
  const Json summary = summarize_runs(records);
  const Judgement judgement = judge(summary);
  const std::vector<Setting> settings = settings_of(comparison);
  const std::string name = escape_html(text_at(comparison.info, "name"));
  const std::string headline = escape_html(judgement.headline);
  const std::string detail = escape_html(judgement.detail);
  const std::string badge = badge_of(judgement.outcome);
  const std::string set = escape_html(setting(comparison, summary));
  const std::string date = escape_html(text_at(comparison.info, "date"));
  const std::string notice = notice_html(settings), tiles = tiles_html(summary);
  const std::string table = table_html(summary), recipe = recipe_html(settings);
  const std::string runs = runs_html(comparison.runs), machine = machine_html(comparison);
  const std::string sequences = escape_html(diagnosed(comparison.runs));
  const std::string exclusion = escape_html(exclusion_text(comparison.runs));
  const std::string command = escape_html(repeat_command(comparison));
  const std::string data = script_json(plot_data(comparison, summary));
  const std::string main = fill(kEmbedded_page_html, {{"name", name},
                                                      {"headline", headline},
                                                      {"detail", detail},
                                                      {"badge", badge},
                                                      {"setting", set},
                                                      {"diagnosed", sequences},
                                                      {"exclusion", exclusion},
                                                      {"date", date},
                                                      {"notice", notice},
                                                      {"tiles", tiles},
                                                      {"table", table},
                                                      {"recipe", recipe},
                                                      {"runs", runs},
                                                      {"machine", machine},
                                                      {"command", command}});
  const std::string title = name + " – XSA against standard attention";
  return render({"xsa compare", title, main, data, kEmbedded_page_js, plotly_js});
}

void write_report(const fs::path& folder) {
  const Comparison comparison = load_comparison(folder);
  atomic_write(folder / "report.html", render_page(comparison, read_plotly()));
}

}  // namespace xsa::report
