#include "xsa/report/figures.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "xsa/base/error.h"
#include "xsa/report/curves.h"
#include "xsa/report/margin_figures.h"
#include "xsa/report/metrics.h"

namespace xsa::report {

const char* const kMarginNote =
    "Margin: standard − XSA in final validation loss (nats a token), seed by seed; above 0, XSA is "
    "ahead. ±: sample standard deviation over seeds. The interval is the 95 % paired t interval, "
    "from three seeds on; p values are two-sided, from six seeds on: of the paired t test, and of "
    "the exact sign-flip permutation test (all 2^n signs, up to 20 seeds).";

namespace {

constexpr std::size_t kMostFigurePoints = 300;

Trace curve_trace(const std::string& name, const std::string& style, const Curve& curve,
                  const char* kind) {
  const Curve few = thin(curve, kMostFigurePoints);
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
    const std::string style(attention), name = shown_attention(attention);
    const auto& runs = group.runs(attention);
    const auto add = [&](const char* what, Curve Run::*kind, const char* look) {
      const Curve curve = mean_curve(runs, kind);
      if (!curve.step.empty()) panel.traces.push_back(curve_trace(name + what, style, curve, look));
    };
    add(", training", &Run::train, "thin");
    add(", validation", &Run::validation, "line");
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

namespace {

/// Sizes side by side, with both attentions, and how their margins go.
View sizes_view(const std::vector<const Group*>& pairs) {
  View view{"with both attentions", {}};
  Panel margins{"margin in validation loss",
                "training tokens",
                "standard − XSA, nats/token",
                {},
                "linear",
                true};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    view.panels.push_back(size_panel(*pairs[i]));
    Trace margin = margin_curve(*pairs[i], pairs.size() == 1 ? "margin" : line_style(i));
    if (!margin.x.empty()) margins.traces.push_back(std::move(margin));
  }
  if (!margins.traces.empty()) view.panels.push_back(std::move(margins));
  return view;
}

/// The curves of runs that have no like with the other attention, or have not ended, one by one.
void add_single_views(const Study& study, const std::vector<const Group*>& pairs,
                      std::vector<View>& views) {
  for (const Group& group : study.groups) {
    if (std::find(pairs.begin(), pairs.end(), &group) != pairs.end()) continue;
    Panel panel = size_panel(group);
    if (!panel.traces.empty()) views.push_back({name_of(group.labels), {std::move(panel)}});
  }
}

}  // namespace

void add_loss_figures(const Parts& parts, std::vector<Figure>& figures) {
  for (const Study& study : parts.studies) {
    if (study.figure != "" && study.figure != "fig3") continue;
    if (study.figure == "" && !study.axes.empty() && study.axes[0].first != "model") continue;
    const auto pairs = pairs_of(study);
    Figure figure = start(study, "fig3", "Fig. 3", "Training and validation loss by model size");
    if (!pairs.empty()) figure.views.push_back(sizes_view(pairs));
    if (study.figure.empty()) add_single_views(study, pairs, figure.views);
    if (figure.views.empty()) continue;
    if (pairs.empty()) {
      figure.caption = "No finished runs differ in attention alone, so there is no margin.";
    } else {
      figure.paper =
          "paper, 0.7B, 1.4B, 2.7B: the margin appears early and does not close (no figures known "
          "here).";
    }
    add_margin_figure(std::move(figure), study, "sizes", figures);
    figures.back().columns = 4;
    add_search_figure(study, figures);
  }
}

std::vector<Figure> figures_of(const Parts& parts) {
  std::vector<Figure> figures;
  add_layer_figures(parts, figures);
  add_block_figures(parts, figures);
  add_loss_figures(parts, figures);
  add_task_tables(parts, figures);
  add_sweep_figures(parts, figures);
  if (parts.is_one_study())
    std::stable_partition(figures.begin(), figures.end(),
                          [](const Figure& figure) { return !figure.id.starts_with("fig1"); });
  std::set<std::string> ids;
  for (Figure& figure : figures) {
    const std::string wanted = figure.id;
    for (int i = 2; !ids.insert(figure.id).second; ++i) figure.id = cat(wanted, "-", i);
  }
  return figures;
}

}  // namespace xsa::report
