// Fig. 4 to 6, the variants, and the search behind Fig. 3, from sweeps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "xsa/base/error.h"
#include "xsa/report/margin_figures.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

/// Mean over seeds; low and high where the interval is known, else the spread.
void add_margin(Trace& trace, const Json& x, const Margin& margin) {
  const double reach = std::isfinite(margin.half) ? margin.half : margin.spread;
  trace.x.push_back(x);
  trace.y.push_back(margin.mean);
  trace.low.push_back(margin.mean - reach);
  trace.high.push_back(margin.mean + reach);
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

Axis axis_of(const Study& study, std::size_t index) {
  Axis axis{study.axes.size() <= index ? "" : study.axes[index].second};
  for (const Group& group : study.groups)
    axis.is_numeric =
        axis.is_numeric && group.labels.size() > index && number_of(group.labels[index].second) > 0;
  return axis;
}

/// The other labels than that of an axis.
std::string rest_of(Labels labels, std::size_t axis) {
  if (axis < labels.size()) labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(axis));
  return labels.empty() ? "" : name_of(labels);
}

std::vector<std::string> rests_of(const Study& study, std::size_t axis) {
  std::vector<std::string> rests;
  for (const Group& group : study.groups) {
    const std::string rest = rest_of(group.labels, axis);
    if (std::find(rests.begin(), rests.end(), rest) == rests.end()) rests.push_back(rest);
  }
  return rests;
}

/// Final loss of both, and the margin, along the sweep's first axis; a series for each setting of
/// the others.
std::vector<Panel> along_axis(const Study& study, const char* loss_kind, const char* margin_kind) {
  const Axis axis = axis_of(study, 0);
  const std::string scale = axis.is_numeric ? "log" : "category";
  Panel losses{"final validation loss", axis.label, "nats/token", {}, scale};
  Panel margins{"margin, standard − XSA", axis.label, "nats/token", {}, scale, true};
  const auto rests = rests_of(study, 0);
  for (std::size_t i = 0; i < rests.size(); ++i) {
    const std::string suffix = rests[i].empty() ? "" : ", " + rests[i];
    Trace margin{"margin" + suffix, rests.size() == 1 ? "margin" : line_style(i)};
    for (const std::string_view attention : kAttentions) {
      const std::string style(attention);
      Trace loss{shown_attention(attention) + suffix, i == 0 ? style : cat(style, ":", i)};
      loss.kind = loss_kind;
      for (const Group& group : study.groups)
        if (rest_of(group.labels, 0) == rests[i])
          add_point(loss, axis.place(group.labels.empty() ? "all" : group.labels[0].second),
                    values_of(final_losses(group.runs(attention))));
      losses.traces.push_back(loss);
    }
    for (const Group& group : study.groups)
      if (rest_of(group.labels, 0) == rests[i])
        add_margin(margin, axis.place(group.labels.empty() ? "all" : group.labels[0].second),
                   margin_in(group));
    margin.kind = margin_kind;
    margins.traces.push_back(margin);
  }
  return {losses, margins};
}

/// "The margin goes from a at 64 to b at 1024, and grows with every step."
std::string growth_text(const Study& study) {
  auto pairs = pairs_of(study);
  if (pairs.size() < 2 || !axis_of(study, 0).is_numeric) return "";
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
      Trace trace{shown_attention(attention), style};
      trace.kind = "bar";
      for (const Group& group : study.groups) {
        std::vector<double> values;
        for (const Run& run : group.runs(attention)) {
          const double value = mean_over_layers(run.record.diagnose, key);
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

std::ptrdiff_t groups_with_losses(const Study& study) {
  return std::count_if(study.groups.begin(), study.groups.end(), [](const Group& group) {
    return !final_losses(group.standard).empty() || !final_losses(group.exclusive).empty();
  });
}

void add_variants(const Study& study, std::vector<Figure>& figures) {
  Figure figure = start(study, "variants", "Variants", "Final validation loss of each setting");
  figure.table = variants_table(study);
  if (figure.table.rows.empty()) return;
  const auto best =
      std::min_element(figure.table.rows.begin(), figure.table.rows.end(),
                       [](const auto& a, const auto& b) { return a[3].value < b[3].value; });
  figure.caption = cat("Lowest: ", (*best)[0].text, " with ", (*best)[1].text, " attention, ",
                       four((*best)[3].value), " nats a token.", chance_text(study));
  figure.table = without_unknown(figure.table);
  figure.paper =
      "Against the first row: its loss − this row's, seed by seed; above 0 this row is better. "
      "Spread, interval and tests are those of that difference.";
  figures.push_back(figure);
}

}  // namespace

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
                            {shown_attention(attention)},
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

void add_search_figure(const Study& study, std::vector<Figure>& figures) {
  if (study.axes.size() < 2) return;
  const std::size_t last = study.axes.size() - 1;
  const Axis axis = axis_of(study, last);
  Panel panel{"final validation loss, standard attention",
              axis.label,
              "nats/token",
              {},
              axis.is_numeric ? "log" : "category"};
  std::string best;
  for (const std::string& rest : rests_of(study, last)) {
    Trace trace{rest, line_style(panel.traces.size())};
    std::string lowest;
    double loss = std::numeric_limits<double>::infinity();
    for (const Group& group : study.groups) {
      const auto losses = values_of(final_losses(group.standard));
      if (losses.empty() || group.labels.size() <= last || rest_of(group.labels, last) != rest)
        continue;
      const std::string& value = group.labels[last].second;
      add_point(trace, axis.place(value), losses);
      if (trace.y.back() >= loss) continue;
      loss = trace.y.back();
      lowest = value;
    }
    if (trace.y.size() < 2) continue;
    best += cat(best.empty() ? "" : "; ", rest, ": ", lowest);
    panel.traces.push_back(trace);
  }
  if (panel.traces.empty()) return;
  Figure figure = start(study, "fig3-search", "Fig. 3, search", "The search for the baseline");
  figure.caption = cat("Lowest at ", axis.label, " – ", best, ".");
  figure.paper = "paper: searched for the baseline, and reused as it is for XSA.";
  figure.views = {{"", {panel}}};
  figure.columns = 2;
  figures.push_back(figure);
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
          std::ssize(pairs_of(study)) == groups_with_losses(study)))
      add_variants(study, figures);
}

}  // namespace xsa::report
