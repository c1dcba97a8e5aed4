#include "xsa/report/figures.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "xsa/base/error.h"
#include "xsa/report/curves.h"
#include "xsa/report/metrics.h"

namespace xsa::report {

const char* const kMarginNote =
    "Margin: standard − XSA in final validation loss (nats a token), seed by seed; above 0, XSA is "
    "ahead. ±: sample standard deviation over seeds. The interval is the 95 % paired t interval, "
    "from three seeds on; p values are two-sided, from six seeds on: of the paired t test, and of "
    "the exact sign-flip permutation test (all 2^n signs, up to 20 seeds).";

namespace {

constexpr std::size_t kMostPoints = 300;

std::string four(double value) { return format_number(value, 4); }

std::vector<double> values_of(const BySeed& losses) {
  std::vector<double> values;
  for (const auto& [seed, loss] : losses) values.push_back(loss);
  return values;
}

Margin margin_in(const Group& group) {
  return margin_between(final_losses(group.standard), final_losses(group.exclusive));
}

std::vector<const Group*> pairs_of(const Study& study) {
  std::vector<const Group*> pairs;
  for (const Group& group : study.groups)
    if (!margin_in(group).values.empty()) pairs.push_back(&group);
  return pairs;
}

/// Mean over seeds; low and high where the interval is known, else the spread.
void add_margin(Trace& trace, const Json& x, const Margin& margin) {
  const double reach = std::isfinite(margin.half) ? margin.half : margin.spread;
  trace.x.push_back(x);
  trace.y.push_back(margin.mean);
  trace.low.push_back(margin.mean - reach);
  trace.high.push_back(margin.mean + reach);
}

Trace curve_trace(const std::string& name, const std::string& style, const Curve& curve,
                  const char* kind) {
  const Curve few = thin(curve, kMostPoints);
  Trace trace{name, style};
  trace.kind = kind;
  for (std::size_t i = 0; i < few.tokens.size(); ++i) {
    trace.x.emplace_back(few.tokens[i]);
    trace.y.push_back(few.loss[i]);
  }
  return trace;
}

Curve mean_curve(const std::vector<Run>& runs, Curve Run::*kind) {
  std::vector<Curve> curves;
  for (const Run& run : runs)
    if (!(run.*kind).step.empty()) curves.push_back(run.*kind);
  return mean_of(curves);
}

/// Training and validation loss of both attentions.
Panel size_panel(const Group& group) {
  Panel panel{name_of(group.labels), "training tokens", "nats/token"};
  for (const std::string_view attention : kAttentions) {
    const std::string style(attention), name = style == "standard" ? style : "XSA";
    const auto& runs = group.runs(attention);
    panel.traces.push_back(
        curve_trace(name + ", training", style, mean_curve(runs, &Run::train), "thin"));
    panel.traces.push_back(
        curve_trace(name + ", validation", style, mean_curve(runs, &Run::validation), "line"));
  }
  return panel;
}

/// standard - XSA over training, mean over seeds.
Trace margin_curve(const Group& group, const std::string& style) {
  std::vector<Curve> curves;
  for (const Run& standard : group.standard)
    for (const Run& exclusive : group.exclusive)
      if (standard.record.seed == exclusive.record.seed)
        curves.push_back(difference_of(standard.validation, exclusive.validation));
  return curve_trace(name_of(group.labels), style, mean_of(curves), "line");
}

std::string range_text(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (values.size() == 1) return "by " + four(values[0]);
  return "by " + four(values.front()) + " to " + four(values.back());
}

/// "XSA ends lower at 3 of 4 sizes, by 0.01 to 0.03 nats a token (not at 2e-3: −0.01)."
std::string ahead_text(const std::vector<const Group*>& groups, const std::string& what) {
  std::vector<double> ahead;
  std::string behind;
  for (const Group* const group : groups) {
    const double mean = margin_in(*group).mean;
    if (mean > 0) {
      ahead.push_back(mean);
    } else {
      behind += (behind.empty() ? "" : "; ") + name_of(group->labels) + ": " + four(mean);
    }
  }
  if (groups.empty()) return "No setting has finished runs of both attentions yet.";
  if (ahead.empty())
    return cat("XSA ends with the lower validation loss at none of ", groups.size(), " ", what,
               ".");
  if (groups.size() == 1)
    return cat("XSA ends with the lower validation loss, ", range_text(ahead), " nats a token.");
  return cat("XSA ends with the lower validation loss at ", ahead.size(), " of ", groups.size(),
             " ", what, ", ", range_text(ahead), " nats a token",
             behind.empty() ? "" : " (not at " + behind + ")", ".");
}

/// A label as a number, or NaN.
double number_of(const std::string& text) {
  std::size_t used = 0;
  try {
    const double value = std::stod(text, &used);
    return used == text.size() ? value : std::nan("");
  } catch (const std::exception&) {
    return std::nan("");
  }
}

/// Places on the x axis: numbers above 0 on a log axis, else the labels as they are.
struct Axis {
  std::string label;
  bool is_numeric = true;

  Json place(const std::string& value) const {
    return is_numeric ? Json(number_of(value)) : Json(value);
  }
};

Axis first_axis(const Study& study) {
  Axis axis{study.axes.empty() ? "" : study.axes[0].second};
  for (const Group& group : study.groups)
    axis.is_numeric =
        axis.is_numeric && !group.labels.empty() && number_of(group.labels[0].second) > 0;
  return axis;
}

std::string rest_of(const Labels& labels) {
  if (labels.size() < 2) return "";
  return name_of(Labels(labels.begin() + 1, labels.end()));
}

std::vector<std::string> rests_of(const Study& study) {
  std::vector<std::string> rests;
  for (const Group& group : study.groups) {
    const std::string rest = rest_of(group.labels);
    if (std::find(rests.begin(), rests.end(), rest) == rests.end()) rests.push_back(rest);
  }
  return rests;
}

/// Final loss of both, and the margin, along the sweep's first axis; a series for each setting of
/// the others.
std::vector<Panel> along_axis(const Study& study, const char* loss_kind, const char* margin_kind) {
  const Axis axis = first_axis(study);
  const std::string scale = axis.is_numeric ? "log" : "category";
  Panel losses{"final validation loss", axis.label, "nats/token", {}, scale};
  Panel margins{"margin, standard − XSA", axis.label, "nats/token", {}, scale, true};
  const auto rests = rests_of(study);
  for (std::size_t i = 0; i < rests.size(); ++i) {
    const std::string suffix = rests[i].empty() ? "" : ", " + rests[i];
    Trace margin{"margin" + suffix, rests.size() == 1 ? "margin" : std::to_string(i)};
    for (const std::string_view attention : kAttentions) {
      const std::string style(attention);
      Trace loss{(style == "standard" ? style : "XSA") + suffix, style};
      loss.kind = loss_kind;
      for (const Group& group : study.groups)
        if (rest_of(group.labels) == rests[i])
          add_point(loss, axis.place(group.labels.empty() ? "all" : group.labels[0].second),
                    values_of(final_losses(group.runs(attention))));
      losses.traces.push_back(loss);
    }
    for (const Group& group : study.groups)
      if (rest_of(group.labels) == rests[i])
        add_margin(margin, axis.place(group.labels.empty() ? "all" : group.labels[0].second),
                   margin_in(group));
    margin.kind = margin_kind;
    margins.traces.push_back(margin);
  }
  return {losses, margins};
}

/// Loss of both, margin, interval and tests: a row a group with runs of both.
Table margin_table(const std::vector<const Group*>& groups, const std::string& first_head) {
  Table table{{first_head, "seeds", "standard", "±", "XSA", "±", "margin", "±", "95 % from", "to",
               "p, t", "p, sign flips"},
              {}};
  for (const Group* const group : groups) {
    const Margin margin = margin_in(*group);
    std::vector<Cell> row = {{name_of(group->labels)},
                             number_cell(static_cast<double>(margin.values.size()), 0)};
    for (const std::string_view attention : kAttentions) {
      const Margin losses = margin_of(values_of(final_losses(group->runs(attention))));
      row.push_back(number_cell(losses.mean, 4));
      row.push_back(number_cell(losses.spread, 4));
    }
    row.push_back(number_cell(margin.mean, 4, true));
    row.push_back(number_cell(margin.spread, 4));
    row.push_back(number_cell(margin.mean - margin.half, 4, true));
    row.push_back(number_cell(margin.mean + margin.half, 4, true));
    row.push_back(chance_cell(margin.t_test));
    row.push_back(chance_cell(margin.sign_flips));
    table.rows.push_back(row);
  }
  return table;
}

bool is_known(const Cell& cell) { return cell.decimals < 0 || std::isfinite(cell.value); }

/// Without the columns in which nothing is known, as p values of few seeds.
Table without_unknown(const Table& table) {
  Table few{{}, std::vector<std::vector<Cell>>(table.rows.size())};
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    if (std::none_of(table.rows.begin(), table.rows.end(),
                     [&](const auto& row) { return is_known(row[i]); }))
      continue;
    few.head.push_back(table.head[i]);
    for (std::size_t row = 0; row < few.rows.size(); ++row)
      few.rows[row].push_back(table.rows[row][i]);
  }
  return few;
}

/// A row a group and attention, against the first row.
Table variants_table(const Study& study) {
  Table table{{"", "attention", "seeds", "validation loss", "±", "margin over its standard",
               "against the first row", "±", "95 % from", "to", "p, t", "p, sign flips"},
              {}};
  BySeed first;
  for (const Group& group : study.groups) {
    for (const std::string_view attention : kAttentions) {
      const BySeed losses = final_losses(group.runs(attention));
      if (losses.empty()) continue;
      if (first.empty()) first = losses;
      const Margin own = margin_of(values_of(losses));
      const Margin twin = attention == "exclusive" ? margin_in(group) : Margin();
      const Margin gain = table.rows.empty() ? Margin() : margin_between(first, losses);
      table.rows.push_back({{name_of(group.labels)},
                            {attention == "exclusive" ? "XSA" : "standard"},
                            number_cell(static_cast<double>(losses.size()), 0),
                            number_cell(own.mean, 4),
                            number_cell(own.spread, 4),
                            number_cell(twin.mean, 4, true),
                            number_cell(gain.mean, 4, true),
                            number_cell(gain.spread, 4),
                            number_cell(gain.mean - gain.half, 4, true),
                            number_cell(gain.mean + gain.half, 4, true),
                            chance_cell(gain.t_test),
                            chance_cell(gain.sign_flips)});
    }
  }
  return table;
}

Figure start(const Study& study, const char* id, const char* number, const std::string& title) {
  return {slug(cat(id, "-", study.name)), number, title,
          study.title.empty() ? study.name : study.title};
}

void add_margin_figure(Figure figure, const Study& study, const char* what,
                       std::vector<Figure>& figures) {
  const auto pairs = pairs_of(study);
  if (figure.caption.empty()) figure.caption = ahead_text(pairs, what);
  figure.table =
      without_unknown(margin_table(pairs, study.axes.empty() ? "" : study.axes[0].second));
  figure.columns = 2;
  figures.push_back(std::move(figure));
}

/// "The margin goes from a at 64 to b at 1024, and grows with every step."
std::string growth_text(const Study& study) {
  auto pairs = pairs_of(study);
  if (pairs.size() < 2 || !first_axis(study).is_numeric) return "";
  std::stable_sort(pairs.begin(), pairs.end(), [](const Group* a, const Group* b) {
    return number_of(a->labels[0].second) < number_of(b->labels[0].second);
  });
  std::size_t steps_up = 0;
  for (std::size_t i = 1; i < pairs.size(); ++i)
    steps_up += margin_in(*pairs[i]).mean > margin_in(*pairs[i - 1]).mean;
  const auto at = [](const Group& group) {
    return four(margin_in(group).mean) + " at " + group.labels[0].second;
  };
  return cat("The margin goes from ", at(*pairs.front()), " to ", at(*pairs.back()),
             steps_up + 1 == pairs.size() ? ", and grows with every step in length."
                                          : cat(", and grows with ", steps_up, " of ",
                                                pairs.size() - 1, " steps in length."));
}

std::string list_text(const Study& study) {
  std::string text;
  for (const Group* const group : pairs_of(study))
    text +=
        (text.empty() ? "" : "; ") + name_of(group->labels) + ": " + four(margin_in(*group).mean);
  return text;
}

double mean_over_layers(const Run& run, const char* key) {
  if (!run.record.diagnose.is_object()) return std::nan("");
  double sum = 0;
  const Json& layers = run.record.diagnose["layers"];
  for (const Json& layer : layers) sum += number_at(layer, key);
  return sum / static_cast<double>(layers.size());
}

/// Where attention's mass goes, with each kind of sink.
void add_sink_masses(const Study& study, std::vector<Figure>& figures) {
  Figure figure = start(study, "fig6-masses", "Fig. 6, masses", "Where the attention goes");
  View view{"", {}};
  bool is_known = false;
  for (const auto& [key, title] : {std::pair{"first_key_mass", "on the first key"},
                                   {"sink_mass", "on sinks"},
                                   {"attention_diagonal", "on the own key"}}) {
    Panel panel{
        title, study.axes.empty() ? "" : study.axes[0].second, "attention mass", {}, "category",
        true};
    for (const std::string_view attention : kAttentions) {
      const std::string style(attention);
      Trace trace{style == "standard" ? style : "XSA", style};
      trace.kind = "bar";
      for (const Group& group : study.groups) {
        std::vector<double> values;
        for (const Run& run : group.runs(attention)) {
          const double value = mean_over_layers(run, key);
          if (std::isfinite(value)) values.push_back(value);
        }
        is_known = is_known || (!values.empty() && key != std::string("attention_diagonal"));
        add_point(trace, name_of(group.labels), values);
      }
      panel.traces.push_back(trace);
    }
    view.panels.push_back(panel);
  }
  if (!is_known) return;
  figure.caption =
      "Mean attention mass over layers, heads and tokens, with and without XSA, for each kind of "
      "sink.";
  figure.paper = "paper, 1.3B: XSA acts as an implicit sink (no figures known here).";
  figure.views = {view};
  figures.push_back(figure);
}

void add_variants(const Study& study, std::vector<Figure>& figures) {
  Figure figure = start(study, "variants", "Variants", "Final validation loss of each setting");
  figure.table = variants_table(study);
  if (figure.table.rows.empty()) return;
  const auto best =
      std::min_element(figure.table.rows.begin(), figure.table.rows.end(),
                       [](const auto& a, const auto& b) { return a[3].value < b[3].value; });
  figure.caption = cat("Lowest: ", (*best)[0].text, " with ", (*best)[1].text, " attention, ",
                       four((*best)[3].value), " nats a token.");
  figure.table = without_unknown(figure.table);
  figure.paper =
      "Against the first row: its loss − this row's, seed by seed; above 0 this row is better. "
      "Spread, interval and tests are those of that difference.";
  figures.push_back(figure);
}

}  // namespace

void add_point(Trace& trace, const Json& x, const std::vector<double>& values) {
  const Margin margin = margin_of(values);
  trace.x.push_back(x);
  trace.y.push_back(margin.mean);
  trace.low.push_back(margin.mean - margin.spread);
  trace.high.push_back(margin.mean + margin.spread);
}

std::string slug(const std::string& text) {
  std::string name;
  for (const unsigned char letter : text) {
    if (std::isalnum(letter) && letter < 128) {
      name += static_cast<char>(letter);
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "figure" : name;
}

void add_loss_figures(const Parts& parts, std::vector<Figure>& figures) {
  for (const Study& study : parts.studies) {
    if (study.figure != "" && study.figure != "fig3") continue;
    if (study.figure == "" && !study.axes.empty() && study.axes[0].first != "model") continue;
    const auto pairs = pairs_of(study);
    if (pairs.empty()) continue;
    Figure figure = start(study, "fig3", "Fig. 3", "Training and validation loss by model size");
    View view{"", {}};
    Panel margins{
        "margin in validation loss", "training tokens", "standard − XSA", {}, "linear", true};
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      view.panels.push_back(size_panel(*pairs[i]));
      margins.traces.push_back(
          margin_curve(*pairs[i], pairs.size() == 1 ? "margin" : std::to_string(i)));
    }
    view.panels.push_back(margins);
    figure.views = {view};
    figure.paper =
        "paper, 0.7B, 1.4B, 2.7B: the margin appears early and does not close (no figures known "
        "here).";
    add_margin_figure(std::move(figure), study, "sizes", figures);
    figures.back().columns = 4;
  }
}

void add_sweep_figures(const Parts& parts, std::vector<Figure>& figures) {
  for (const Study& study : parts.studies) {
    if (study.figure == "fig4" && !study.groups.empty()) {
      Figure figure = start(study, "fig4", "Fig. 4", "Loss against learning rate");
      figure.views = {{"", along_axis(study, "line", "line")}};
      figure.paper =
          "paper, 1.3B: four learning rates, the margin is about the same at each (no figures "
          "known here).";
      add_margin_figure(std::move(figure), study, "learning rates", figures);
    }
  }
  for (const Study& study : parts.studies) {
    if (study.figure == "fig5" && !study.groups.empty()) {
      Figure figure = start(study, "fig5", "Fig. 5", "Margin against sequence length");
      figure.views = {{"", along_axis(study, "line", "line")}};
      figure.caption = growth_text(study);
      figure.paper =
          "paper, 1.3B: six lengths up to 16K at about 0.5M tokens a batch, the margin grows with "
          "every step in length (no figures known here).";
      add_margin_figure(std::move(figure), study, "lengths", figures);
    }
  }
  for (const Study& study : parts.studies) {
    if (study.figure == "fig6" && !study.groups.empty()) {
      Figure figure = start(study, "fig6", "Fig. 6", "Attention sinks crossed with XSA");
      figure.views = {{"", along_axis(study, "points", "bar")}};
      const std::string margins = list_text(study);
      if (!margins.empty()) figure.caption = "Margin by kind of sink: " + margins + ".";
      figure.paper =
          "paper, 1.3B: with learned sinks in both the margin stays (no figures known here).";
      add_margin_figure(std::move(figure), study, "kinds of sink", figures);
      add_sink_masses(study, figures);
    }
  }
  const std::set<std::string> shown_above = {"fig3", "fig4", "fig5", "fig6"};
  for (const Study& study : parts.studies)
    if (!shown_above.contains(study.figure) &&
        !(study.figure.empty() && !study.axes.empty() && study.axes[0].first == "model" &&
          !pairs_of(study).empty()))
      add_variants(study, figures);
}

std::vector<Figure> figures_of(const Parts& parts) {
  std::vector<Figure> figures;
  add_layer_figures(parts, figures);
  add_block_figures(parts, figures);
  add_loss_figures(parts, figures);
  add_task_tables(parts, figures);
  add_sweep_figures(parts, figures);
  std::set<std::string> ids;
  for (Figure& figure : figures) {
    const std::string wanted = figure.id;
    for (int i = 2; !ids.insert(figure.id).second; ++i) figure.id = cat(wanted, "-", i);
  }
  return figures;
}

}  // namespace xsa::report
