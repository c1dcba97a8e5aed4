// Fig. 1 and what the paper's readers ask next: quantities of diagnose.json over layers, by head,
// and over training.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "xsa/base/error.h"
#include "xsa/report/diagnosis.h"
#include "xsa/report/figures.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

struct Quantity {
  const char* key;
  const char* title;
};

constexpr std::array kFigure1 = {
    Quantity{"value_cosine", "cosine of values with one another"},
    Quantity{"attention_diagonal", "diagonal of the attention map"},
    Quantity{"output_value_cosine", "cosine of output y and own value"}};
constexpr std::array kMasses = {Quantity{"first_key_mass", "mass on the first key"},
                                Quantity{"sink_mass", "mass on sinks"},
                                Quantity{"attention_diagonal", "mass on the own key"},
                                Quantity{"removed_share", "share of y that XSA removes"}};

/// Models shown as one line: a name, its attention, and a diagnosis a seed.
struct Line {
  std::string name, style;
  std::vector<const Json*> diagnoses;
};

struct Choice {
  std::string label;
  std::vector<Line> lines;
};

std::vector<Choice> choices_of(const Parts& parts) {
  std::vector<Choice> choices;
  if (!parts.diagnoses.empty()) {
    Choice choice{"diagnoses", {}};
    std::map<std::string, int> taken;
    for (const NamedJson& diagnosis : parts.diagnoses) {
      const std::string attention =
          diagnosis.json.value("attention", "") == "exclusive" ? "exclusive" : "standard";
      const int number = taken[attention]++;
      choice.lines.push_back({diagnosis.name,
                              number == 0 ? attention : std::to_string(choice.lines.size()),
                              {&diagnosis.json}});
    }
    choices.push_back(choice);
  }
  for (const Study& study : parts.studies) {
    for (const Group& group : study.groups) {
      Choice choice{parts.studies.size() == 1 || study.is_loose || study.groups.size() == 1
                        ? name_of(group.labels)
                        : study.name + ": " + name_of(group.labels),
                    {}};
      for (const std::string_view attention : kAttentions) {
        Line line{shown_attention(attention), std::string(attention), {}};
        for (const Run& run : group.runs(attention))
          if (run.record.diagnose.is_object()) line.diagnoses.push_back(&run.record.diagnose);
        if (!line.diagnoses.empty()) choice.lines.push_back(line);
      }
      if (!choice.lines.empty()) choices.push_back(choice);
    }
  }
  std::stable_partition(choices.begin(), choices.end(),  // what can be compared is shown first
                        [](const Choice& choice) { return choice.lines.size() > 1; });
  return choices;
}

/// Over layers; nothing where no layer has the quantity.
std::optional<Trace> over_layers(const Line& line, const char* key) {
  Trace trace{line.name, line.style};
  std::map<double, std::vector<double>> by_layer;
  for (const Json* const diagnosis : line.diagnoses)
    for (const Json& layer : diagnosis->at("layers")) {
      const double value = number_at(layer, key);
      if (std::isfinite(value)) by_layer[number_at(layer, "layer")].push_back(value);
    }
  for (const auto& [layer, values] : by_layer) add_point(trace, layer, values);
  return by_layer.empty() ? std::nullopt : std::optional(trace);
}

/// As the mass on sinks is in models without; also where nothing was measured.
bool is_all_zero(const Panel& panel) {
  for (const Trace& trace : panel.traces)
    for (const double value : trace.y)
      if (value != 0) return false;
  return true;
}

template <class Quantities>
View layer_view(const Choice& choice, const Quantities& quantities) {
  View view{choice.label, {}};
  for (const Quantity& quantity : quantities) {
    Panel panel{quantity.title, "layer", "", {}, "linear", true};
    for (const Line& line : choice.lines)
      if (auto trace = over_layers(line, quantity.key)) panel.traces.push_back(*trace);
    if (!is_all_zero(panel)) view.panels.push_back(panel);
  }
  return view;
}

std::string ends_text(const Trace& trace) {
  return cat(trace.name, ": ", format_number(trace.y.front(), 2), " in the first layer, ",
             format_number(trace.y.back(), 2), " in the last");
}

std::string choice_caption(const Choice& choice, const char* key, const std::string& what) {
  std::string text;
  for (const Line& line : choice.lines)
    if (const auto trace = over_layers(line, key))
      text += (text.empty() ? "" : "; ") + ends_text(*trace);
  if (text.empty()) return "";
  std::vector<const Json*> diagnoses;
  for (const Line& line : choice.lines)
    diagnoses.insert(diagnoses.end(), line.diagnoses.begin(), line.diagnoses.end());
  return cat(what, " (", choice.label, ") – ", text, ". Means over ", sequences_text(diagnoses),
             ".");
}

template <class Quantities>
void add_over_layers(Figure figure, const std::vector<Choice>& choices,
                     const Quantities& quantities, const char* needed,
                     std::vector<Figure>& figures) {
  for (const Choice& choice : choices) {
    bool is_known = false;
    for (const Line& line : choice.lines) is_known = is_known || over_layers(line, needed);
    if (!is_known) continue;
    if (figure.caption.empty()) figure.caption = choice_caption(choice, needed, figure.source);
    View view = layer_view(choice, quantities);
    if (!view.panels.empty()) figure.views.push_back(std::move(view));
  }
  figure.source = "";
  if (!figure.views.empty()) figures.push_back(std::move(figure));
}

/// [layers][heads] of one quantity; empty where heads were not measured.
std::vector<std::vector<double>> by_head(const Json& diagnosis, const char* key) {
  std::vector<std::vector<double>> rows;
  for (const Json& layer : diagnosis.at("layers")) {
    if (!layer.contains("heads") || !layer["heads"].is_array()) return {};
    std::vector<double> row;
    bool is_known = false;
    for (const Json& head : layer["heads"]) {
      row.push_back(number_at(head, key));
      is_known = is_known || std::isfinite(row.back());
    }
    if (!is_known) return {};
    rows.push_back(row);
  }
  return rows;
}

void add_heads(const std::vector<Choice>& choices, std::vector<Figure>& figures) {
  Figure figure{"fig1-heads", "Fig. 1, by head", "The same of each head", ""};
  const auto add = [&](const Choice& choice, const Quantity& quantity) {
    View view{std::string(quantity.title) + " · " + choice.label, {}};
    for (const Line& line : choice.lines) {
      Panel panel{line.name, "head", "layer"};
      panel.heat = by_head(*line.diagnoses[0], quantity.key);
      if (!panel.heat.empty()) view.panels.push_back(panel);
    }
    if (!view.panels.empty()) figure.views.push_back(view);
  };
  for (const Choice& choice : choices) {
    for (const Quantity& quantity : {kFigure1[2], kFigure1[1], kFigure1[0]}) add(choice, quantity);
    for (const std::size_t i : {0, 1, 3}) add(choice, kMasses[i]);
  }
  if (figure.views.empty()) return;
  figure.caption = "One cell a head, of the first seed where there are several.";
  figure.columns = 2;
  figures.push_back(figure);
}

/// A quantity's mean over layers at each step that all runs were diagnosed at.
std::optional<Trace> over_training(const std::vector<Run>& runs, std::string_view attention,
                                   const char* key) {
  Trace trace{shown_attention(attention), std::string(attention)};
  std::map<double, std::vector<double>> by_step;
  std::size_t diagnosed = 0;
  for (const Run& run : runs) {
    diagnosed += run.diagnoses.empty() ? 0 : 1;
    for (const Json& line : run.diagnoses) {
      const double mean = mean_over_layers(line, key);
      if (std::isfinite(mean)) by_step[number_at(line, "step")].push_back(mean);
    }
  }
  for (const auto& [step, values] : by_step)
    if (values.size() == diagnosed) add_point(trace, step, values);
  return trace.x.empty() ? std::nullopt : std::optional(trace);
}

void add_training(const Parts& parts, std::vector<Figure>& figures) {
  Figure figure{"fig1-training", "Fig. 1, over training", "When they arise", ""};
  for (const Study& study : parts.studies) {
    for (const Group& group : study.groups) {
      View view{name_of(group.labels), {}};
      const auto add = [&](const Quantity& quantity) {
        Panel panel{quantity.title, "step", "mean over layers", {}, "linear", true};
        for (const std::string_view attention : kAttentions)
          if (auto trace = over_training(group.runs(attention), attention, quantity.key))
            panel.traces.push_back(*trace);
        if (!is_all_zero(panel)) view.panels.push_back(panel);
      };
      for (const Quantity& quantity : kFigure1) add(quantity);
      for (const std::size_t i : {0, 1, 3}) add(kMasses[i]);
      if (!view.panels.empty()) figure.views.push_back(view);
    }
  }
  if (figure.views.empty()) return;
  const Panel& first = figure.views[0].panels.back();
  figure.caption = cat("From the first diagnosed step to the last, ", first.title, " goes ");
  for (const Trace& trace : first.traces)
    figure.caption +=
        cat(&trace == &first.traces[0] ? "" : "; ", "with ", trace.name, " from ",
            format_number(trace.y.front(), 2), " to ", format_number(trace.y.back(), 2));
  figure.caption += ".";
  figures.push_back(figure);
}

}  // namespace

void add_layer_figures(const Parts& parts, std::vector<Figure>& figures) {
  const std::vector<Choice> choices = choices_of(parts);
  Figure three{"fig1", "Fig. 1", "What attention writes along a token’s own value",
               "Cosine of output and own value"};
  three.paper =
      "paper, 1.3B, standard attention: all three are positive and tend to grow with depth (no "
      "figures known here).";
  add_over_layers(three, choices, kFigure1, "output_value_cosine", figures);
  Figure masses{"fig1-masses", "Fig. 1, masses", "Where the attention goes, and what XSA removes",
                "Attention mass on the first key"};
  masses.columns = 4;
  add_over_layers(masses, choices, kMasses, "first_key_mass", figures);
  add_heads(choices, figures);
  add_training(parts, figures);
}

}  // namespace xsa::report
