// Fig. 2 from xsa bench block, Table 2 from xsa eval.
#include <algorithm>
#include <array>
#include <cmath>

#include "xsa/base/conditions.h"
#include "xsa/base/error.h"
#include "xsa/report/figures.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

/// The paper's eight, by lm-eval's names, in its order.
constexpr std::array<const char*, 8> kTasks = {"arc_easy",       "boolq",      "hellaswag",
                                               "lambada_openai", "openbookqa", "piqa",
                                               "social_iqa",     "winogrande"};

const Json& at(const Json& json, const char* key) {
  static const Json nothing;
  return json.is_object() && json.contains(key) ? json[key] : nothing;
}

double quartile(const Json& figure, std::size_t which) {
  const Json& quartiles = at(figure, "quartiles");
  return quartiles.is_array() && quartiles.size() == 2 && quartiles[which].is_number()
             ? quartiles[which].get<double>()
             : std::nan("");
}

void add_quartiles(Trace& trace, const Json& x, const Json& figure) {
  trace.x.push_back(x);
  trace.y.push_back(number_at(figure, "median"));
  trace.low.push_back(quartile(figure, 0));
  trace.high.push_back(quartile(figure, 1));
}

void add_plain(Trace& trace, const Json& x, double value) {
  trace.x.push_back(x);
  trace.y.push_back(value);
}

Figure block_figure(const NamedJson& block) {
  Figure figure{slug("fig2-" + block.name), "Fig. 2", "Speed and memory of one block", block.name};
  Panel time{"more time with XSA", "length", "%", {}, "log", true};
  Panel memory{"more peak memory with XSA", "length", "%", {}, "log", true};
  std::vector<Panel> speeds, peaks;
  double slowest = -1e9, fastest = 1e9, largest = -1e9;
  const std::array<const char*, 2> modes = {"forward", "forward+backward"};
  for (std::size_t m = 0; m < modes.size(); ++m) {
    Panel speed{cat("speed, ", modes[m]), "length", "tokens/s", {}, "log", true};
    Panel peak{cat("peak memory, ", modes[m]), "length", "MiB", {}, "log", true};
    Trace ratio{modes[m], line_style(m)}, share{modes[m], line_style(m)};
    for (const std::string_view attention : kAttentions) {
      const std::string style(attention), name = shown_attention(attention);
      Trace tokens{name, style}, bytes{name, style};
      for (const Json& result : block.json["results"]) {
        if (result.value("mode", "") != modes[m]) continue;
        const Json length = at(result, "length");
        const Json& side = at(result, style.c_str());
        add_quartiles(tokens, length, at(side, "tokens_per_s"));
        add_plain(bytes, length, number_at(side, "peak_bytes") / (1 << 20));
        if (style == "standard") continue;
        add_quartiles(ratio, length, at(result, "time_ratio"));
        for (auto* const column : {&ratio.y, &ratio.low, &ratio.high})
          column->back() = 100 * (column->back() - 1);
        add_plain(share, length, 100 * (number_at(result, "memory_ratio") - 1));
        slowest = std::max(slowest, ratio.y.back());
        fastest = std::min(fastest, ratio.y.back());
        largest = std::max(largest, share.y.back());
      }
      if (tokens.x.empty()) continue;
      speed.traces.push_back(tokens);
      peak.traces.push_back(bytes);
    }
    if (speed.traces.empty()) continue;
    speeds.push_back(speed);
    peaks.push_back(peak);
    time.traces.push_back(ratio);
    memory.traces.push_back(share);
  }
  speeds.push_back(time);
  peaks.push_back(memory);
  figure.columns = speeds.size();
  figure.views = {{"", speeds}};
  figure.views[0].panels.insert(figure.views[0].panels.end(), peaks.begin(), peaks.end());
  const auto percent = [](double more) { return format_number(more, 2, true) + " %"; };
  figure.caption =
      cat("XSA changes the block's time by ", percent(fastest), " to ", percent(slowest),
          " (medians), its peak memory by at most ", percent(largest), ".");
  figure.paper = cat(
      "paper, B200, bf16, batch 32: XSA on and off cannot be told apart (no figures known here). "
      "Here: ",
      at(block.json, "type").is_string() ? block.json["type"].get<std::string>() : "?", ", batch ",
      format_number(number_at(block.json, "batch"), 0), ", width ",
      format_number(number_at(block.json, "width"), 0), ", ",
      format_number(number_at(block.json, "heads"), 0), " heads of ",
      format_number(number_at(block.json, "head_dim"), 0), "; bars are quartiles.");
  return figure;
}

/// Models that differ in attention and seed alone, and were asked the same.
struct Model {
  std::string key, name;
  std::vector<const Evaluated*> standard, exclusive;

  const Evaluated& first() const { return *(standard.empty() ? exclusive : standard).front(); }
  /// What sets `one` apart from those that are here.
  std::vector<Difference> differences_to(const Evaluated& one) const {
    std::vector<Difference> found =
        differences(first().conditions, one.conditions, kSeedAndAttention);
    for (const auto* const side : {&standard, &exclusive})
      for (const Evaluated* const other : *side) {
        const auto asked = differences(other->asked, one.asked);
        found.insert(found.end(), asked.begin(), asked.end());
      }
    return found;
  }
};

double mean_score(const std::vector<const Evaluated*>& models, const std::string& task,
                  const char* metric) {
  double sum = 0;
  for (const Evaluated* const model : models) {
    const auto figures = model->tasks.find(task);
    if (figures == model->tasks.end()) return std::nan("");
    const auto value = figures->second.find(metric);
    if (value == figures->second.end()) return std::nan("");
    sum += 100 * value->second;
  }
  return models.empty() ? std::nan("") : sum / static_cast<double>(models.size());
}

/// Over the paper's tasks that all models have. `customary`: acc_norm of HellaSwag and OpenBookQA.
double average(const std::vector<const Evaluated*>& models, const std::vector<std::string>& tasks,
               bool customary) {
  double sum = 0;
  for (const std::string& task : tasks) {
    const bool is_normed = customary && (task == "hellaswag" || task == "openbookqa");
    sum += mean_score(models, task, is_normed ? "acc_norm" : "acc");
  }
  return tasks.empty() ? std::nan("") : sum / static_cast<double>(tasks.size());
}

/// Of the average of acc, from the tasks' own: how far other records would move it.
double standard_error(const std::vector<const Evaluated*>& models,
                      const std::vector<std::string>& tasks) {
  double sum = 0;
  for (const std::string& task : tasks) sum += std::pow(mean_score(models, task, "acc_stderr"), 2);
  return std::sqrt(sum) / static_cast<double>(tasks.size());
}

std::vector<Model> models_of(const std::vector<Evaluated>& evaluations) {
  std::vector<Model> models;
  for (const Evaluated& one : evaluations) {
    auto model = std::find_if(models.begin(), models.end(), [&](const Model& other) {
      return other.key == one.key && other.differences_to(one).empty();
    });
    if (model == models.end()) {
      const std::string size = std::isfinite(one.parameters) && one.parameters > 0
                                   ? size_text(one.parameters)
                                   : one.name;
      models.push_back({one.key, size, {}, {}});
      for (Model& like : models) {
        if (&like == &models.back() || like.key != one.key) continue;
        for (const Difference& apart : like.differences_to(one)) {
          const std::string theirs = cat(", ", apart.name, " ", apart.there);
          if (like.name.find(theirs) == std::string::npos) like.name += theirs;
          models.back().name += cat(", ", apart.name, " ", apart.here);
        }
        break;
      }
      const std::string name = models.back().name;
      const bool is_taken = std::any_of(models.begin(), models.end() - 1,
                                        [&](const Model& other) { return other.name == name; });
      if (is_taken) models.back().name += ", " + one.name;
      model = models.end() - 1;
    }
    (one.attention == "exclusive" ? model->exclusive : model->standard).push_back(&one);
  }
  return models;
}

void add_gain(std::vector<Cell>& row, double standard, double exclusive) {
  row.push_back(number_cell(standard, 2));
  row.push_back(number_cell(exclusive, 2));
  row.push_back(number_cell(exclusive - standard, 2, true));
}

void add_paper(std::vector<Cell>& row, bool is_average) {
  if (!is_average) return row.resize(row.size() + 5);
  row.push_back(number_cell(0.26, 2, true));
  row.push_back(number_cell(1.03, 2, true));
  add_gain(row, 58.06, 59.42);
}

Figure task_table(const std::vector<Evaluated>& evaluations, const char* id,
                  const std::string& source) {
  const std::vector<Model> models = models_of(evaluations);
  std::vector<std::string> measured, shared;
  for (const char* const task : kTasks) {
    const auto has_task = [&](const Evaluated& one) { return one.tasks.contains(task); };
    if (std::any_of(evaluations.begin(), evaluations.end(), has_task)) measured.emplace_back(task);
    if (std::all_of(evaluations.begin(), evaluations.end(), has_task)) shared.emplace_back(task);
  }
  for (const Evaluated& one : evaluations)
    for (const auto& [task, figures] : one.tasks)
      if (std::find(kTasks.begin(), kTasks.end(), task) == kTasks.end() &&
          std::find(measured.begin(), measured.end(), task) == measured.end())
        measured.push_back(task);

  Figure figure{id, "Table 2", "Zero-shot tasks, accuracy in %", source};
  figure.table.head = {"task"};
  for (const Model& model : models)
    for (const char* const column : {"standard", "XSA", "gain"})
      figure.table.head.push_back(model.name + ": " + column);
  for (const char* const column :
       {"paper, 0.7B: gain", "paper, 1.4B: gain", "paper, 2.7B: standard", "paper, 2.7B: XSA",
        "paper, 2.7B: gain"})
    figure.table.head.emplace_back(column);
  const auto add_row = [&](const std::string& name, const auto& score, bool is_average) {
    std::vector<Cell> row = {{name}};
    for (const Model& model : models) add_gain(row, score(model.standard), score(model.exclusive));
    add_paper(row, is_average);
    figure.table.rows.push_back(row);
  };
  for (const std::string& task : measured)
    add_row(task, [&](const auto& runs) { return mean_score(runs, task, "acc"); }, false);
  add_row(
      cat("average acc of ", shared.size(), " tasks"),
      [&](const auto& runs) { return average(runs, shared, false); }, true);
  add_row(
      "the same, acc_norm of HellaSwag and OpenBookQA",
      [&](const auto& runs) { return average(runs, shared, true); }, false);
  std::vector<Cell> errors = {{"standard error of the average"}};
  std::string gains;
  for (const Model& model : models) {
    const double gain =
        average(model.exclusive, shared, false) - average(model.standard, shared, false);
    const double standard = standard_error(model.standard, shared);
    const double exclusive = standard_error(model.exclusive, shared);
    const double error = std::hypot(standard, exclusive);
    for (const double of : {standard, exclusive, error}) errors.push_back(number_cell(of, 2));
    if (!std::isfinite(gain)) continue;
    gains += cat(gains.empty() ? "" : "; ", model.name, ": ", format_number(gain, 2, true));
    if (std::isfinite(error)) gains += " ± " + format_number(error, 2);
  }
  if (std::any_of(errors.begin(), errors.end(),
                  [](const Cell& cell) { return std::isfinite(cell.value); })) {
    errors.resize(figure.table.head.size());
    figure.table.rows.push_back(errors);
  }
  figure.caption =
      gains.empty() ? "No model was scored with both attentions on the same of the paper's tasks."
                    : cat("Average gain of XSA in points – ", gains,
                          " (paper: +0.26 at 0.7B, +1.03 at 1.4B, +1.36 at 2.7B).");
  figure.paper =
      cat("acc as lm-eval reports it; a model's seeds are averaged. ±: one standard error over "
          "records, of a gain as if both had been asked different ones. The averages are over "
          "those of the "
          "paper's eight tasks that every model here was scored on",
          shared.size() == kTasks.size() ? "."
                                         : ": not all eight, so they are not the paper's average.");
  return figure;
}

/// The last evaluations that runs made of themselves.
std::vector<Evaluated> of_runs(const Parts& parts) {
  std::vector<Evaluated> evaluations;
  for (const Study& study : parts.studies)
    for (const Group& group : study.groups)
      for (const std::string_view attention : kAttentions)
        for (const Run& run : group.runs(attention)) {
          Evaluated one{name_of(group.labels),
                        std::string(attention),
                        study.folder.string() + study.name + name_of(group.labels),
                        std::nan(""),
                        {}};
          one.conditions = run.conditions();
          for (const auto& [key, curve] : run.evaluations)
            if ((key.second == "acc" || key.second == "acc_norm") && !curve.loss.empty()) {
              one.tasks[key.first][key.second] = curve.loss.back();
              one.asked.values["step"] = curve.step.back();
            }
          if (!one.tasks.empty()) evaluations.push_back(one);
        }
  return evaluations;
}

}  // namespace

void add_block_figures(const Parts& parts, std::vector<Figure>& figures) {
  for (const NamedJson& block : parts.blocks) figures.push_back(block_figure(block));
}

void add_task_tables(const Parts& parts, std::vector<Figure>& figures) {
  if (!parts.evaluations.empty())
    figures.push_back(task_table(parts.evaluations, "table2", "xsa eval"));
  const auto own = of_runs(parts);
  if (!own.empty())
    figures.push_back(task_table(own, "table2-runs", "at the runs' last evaluation"));
}

}  // namespace xsa::report
