#include "xsa/report/curves.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

constexpr std::size_t kMostPoints = 1000;

using Columns = std::array<std::vector<double> Curve::*, 4>;
constexpr Columns kCurveColumns = {&Curve::step, &Curve::tokens, &Curve::elapsed_s, &Curve::loss};
constexpr std::array<const char*, 4> kColumnNames = {"step", "tokens", "elapsed_s", "loss"};

/// The curve at the given steps, all of which it has. Steps increase.
Curve at_steps(const Curve& curve, const std::vector<double>& steps) {
  Curve result;
  std::size_t from = 0;
  for (const double step : steps) {
    while (curve.step[from] != step) ++from;
    for (const auto column : kCurveColumns) (result.*column).push_back((curve.*column)[from]);
  }
  return result;
}

std::vector<double> common_steps(std::span<const Curve> curves) {
  if (curves.empty()) return {};
  std::vector<double> common = curves[0].step;
  for (const Curve& curve : curves.subspan(1)) {
    std::vector<double> both;
    std::set_intersection(common.begin(), common.end(), curve.step.begin(), curve.step.end(),
                          std::back_inserter(both));
    common = both;
  }
  return common;
}

double mean_between(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

Json to_json(const Curve& curve) {
  const Curve few = thin(curve, kMostPoints);
  Json json = Json::object();
  for (std::size_t i = 0; i < kCurveColumns.size(); ++i) {
    Json& column = json[kColumnNames[i]] = Json::array();
    for (const double value : few.*kCurveColumns[i]) column.push_back(or_null(value));
  }
  return json;
}

/// {"mean": curve, "seeds": [{"seed": n, ...curve}]}
Json with_mean(const std::vector<Curve>& curves, const std::vector<std::int64_t>& seeds) {
  Json all = Json::array();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    all.push_back(to_json(curves[i]));
    all.back()["seed"] = seeds[i];
  }
  return {{"mean", to_json(mean_of(curves))}, {"seeds", all}};
}

/// One of diagnose.json's quantities over layers (as steps).
Curve layer_curve(const Json& diagnose, const char* key) {
  Curve curve;
  if (diagnose.is_null()) return curve;
  for (const Json& layer : diagnose["layers"]) {
    curve.step.push_back(number_at(layer, "layer"));
    curve.loss.push_back(number_at(layer, key));
  }
  curve.tokens = curve.elapsed_s =
      std::vector<double>(curve.step.size(), std::numeric_limits<double>::quiet_NaN());
  return curve;
}

template <class CurveOf>
Json both_attentions(const std::vector<Run>& runs, const CurveOf& curve_of) {
  Json json = Json::object();
  for (const std::string_view attention : kAttentions) {
    std::vector<Curve> curves;
    std::vector<std::int64_t> seeds;
    for (const Run& run : runs) {
      if (run.record.attention != attention) continue;
      const Curve curve = curve_of(run);
      if (curve.step.empty()) continue;
      curves.push_back(curve);
      seeds.push_back(run.record.seed);
    }
    json[std::string(attention)] = with_mean(curves, seeds);
  }
  return json;
}

Json differences(const std::vector<Run>& runs, Curve Run::*kind, std::size_t reach) {
  std::vector<Curve> curves;
  std::vector<std::int64_t> seeds;
  for (const Run& standard : runs) {
    for (const Run& exclusive : runs) {
      if (standard.record.attention != "standard" || exclusive.record.attention != "exclusive" ||
          standard.record.seed != exclusive.record.seed)
        continue;
      curves.push_back(smooth(difference_of(exclusive.*kind, standard.*kind), reach));
      seeds.push_back(standard.record.seed);
    }
  }
  return with_mean(curves, seeds);
}

Json bars(const Json& summary) {
  Json json = Json::object();
  for (const Metric& metric : kMetrics) {
    for (const std::string_view attention : kAttentions) {
      const Json& figure = summary["results"][std::string(attention)][metric.key];
      Json values = Json::array();
      for (const Json& value : figure["values"])
        values.push_back(value.is_null() ? value : Json(value.get<double>() * metric.scale));
      json[metric.key][std::string(attention)] = {
          {"mean", or_null(number_at(figure, "mean") * metric.scale)}, {"values", values}};
    }
  }
  return json;
}

/// Of a text, one of its three figures: the others say the same in other units.
bool is_plotted(const std::string& metric) {
  return metric != "word_perplexity" && metric != "byte_perplexity";
}

/// Limits for the figures of all runs, hidden or shown, a little apart from them: around a constant
/// as well, of a share within [0, 1]. null where nothing was measured.
Json value_range(const std::vector<Run>& runs, const EvaluationKey& key) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const Run& run : runs) {
    const auto found = run.evaluations.find(key);
    if (found == run.evaluations.end()) continue;
    for (const double value : found->second.loss) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (least > most) return nullptr;
  const double margin = 0.05 * (most > least ? most - least : std::max(1.0, std::abs(most)));
  const bool is_share = key.second.starts_with("acc");
  return {is_share ? std::max(0.0, least - margin) : least - margin,
          is_share ? std::min(1.0, most + margin) : most + margin};
}

/// [{"name": "piqa", "metric": "acc", "range": [0.4, 0.7], "curves": {"standard": ..., "exclusive":
/// ...}}, ...]
Json evaluations(const std::vector<Run>& runs) {
  std::set<EvaluationKey> keys;
  for (const Run& run : runs)
    for (const auto& [key, curve] : run.evaluations)
      if (is_plotted(key.second)) keys.insert(key);
  Json json = Json::array();
  for (const EvaluationKey& key : keys) {
    const auto curve_of = [&](const Run& run) {
      const auto found = run.evaluations.find(key);
      return found == run.evaluations.end() ? Curve() : found->second;
    };
    json.push_back({{"name", key.first},
                    {"metric", key.second},
                    {"range", value_range(runs, key)},
                    {"curves", both_attentions(runs, curve_of)}});
  }
  return json;
}

}  // namespace

Curve mean_of(std::span<const Curve> curves) {
  const std::vector<double> steps = common_steps(curves);
  Curve mean;
  for (const auto column : kCurveColumns) (mean.*column).assign(steps.size(), 0);
  for (const Curve& curve : curves) {
    const Curve aligned = at_steps(curve, steps);
    for (const auto column : kCurveColumns)
      for (std::size_t i = 0; i < steps.size(); ++i)
        (mean.*column)[i] += (aligned.*column)[i] / static_cast<double>(curves.size());
  }
  mean.step = steps;
  return mean;
}

Curve difference_of(const Curve& exclusive, const Curve& standard) {
  const std::array<Curve, 2> both = {exclusive, standard};
  const std::vector<double> steps = common_steps(both);
  Curve difference = at_steps(standard, steps);
  const Curve other = at_steps(exclusive, steps);
  for (std::size_t i = 0; i < steps.size(); ++i)
    difference.loss[i] = other.loss[i] - difference.loss[i];
  return difference;
}

Curve smooth(Curve curve, std::size_t reach) {
  const std::vector<double> raw = curve.loss;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const std::size_t near = std::min({reach, i, raw.size() - 1 - i});
    curve.loss[i] = mean_between(raw, i - near, i + near + 1);
  }
  return curve;
}

Curve thin(const Curve& curve, std::size_t limit) {
  const std::size_t size = curve.step.size();
  const std::size_t group = (size + limit - 1) / limit;
  if (group <= 1) return curve;
  Curve few;
  for (std::size_t begin = 0; begin < size; begin += group)
    for (const auto column : kCurveColumns)
      (few.*column).push_back(mean_between(curve.*column, begin, std::min(begin + group, size)));
  return few;
}

Json plot_data(const Comparison& comparison, const Json& summary) {
  const std::vector<Run>& runs = comparison.runs;
  const std::size_t reach = std::max<std::size_t>(1, runs[0].train.step.size() / 20);
  Json curves = {
      {"validation", both_attentions(runs, [](const Run& run) { return run.validation; })},
      {"train", both_attentions(runs, [](const Run& run) { return run.train; })}};
  for (const Metric& metric : kMetrics)
    if (metric.diagnosed)
      curves[metric.key] = both_attentions(
          runs, [&](const Run& run) { return layer_curve(run.record.diagnose, metric.key); });
  return {{"curves", curves},
          {"differences",
           {{"validation", differences(runs, &Run::validation, 0)},
            {"train", differences(runs, &Run::train, reach)}}},
          {"smoothed_over", 2 * reach + 1},
          {"evaluations", evaluations(runs)},
          {"bars", bars(summary)}};
}

}  // namespace xsa::report
