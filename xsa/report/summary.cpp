#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/report/comparison.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double value_of(const RunRecord& run, const Metric& metric) {
  return metric.diagnosed ? mean_over_layers(run.diagnose, metric.key)
                          : number_at(run.summary, metric.key);
}

/// {"mean", "spread", "values"}: spread is the sample standard deviation.
Json aggregate(const std::vector<double>& values) {
  std::vector<double> known;
  Json all = Json::array();
  for (const double value : values) {
    if (std::isfinite(value)) known.push_back(value);
    all.push_back(or_null(value));
  }
  const auto count = static_cast<double>(known.size());
  const double mean = std::accumulate(known.begin(), known.end(), 0.0) / count;  // NaN if none
  double squares = 0;
  for (const double value : known) squares += (value - mean) * (value - mean);
  const double spread = known.size() < 2 ? 0.0 : std::sqrt(squares / (count - 1));
  return {{"mean", or_null(mean)},
          {"spread", known.empty() ? Json(nullptr) : Json(spread)},
          {"values", all}};
}

}  // namespace

Json summarize_runs(const std::vector<RunRecord>& runs) {
  std::vector<std::int64_t> seeds;
  std::map<std::pair<std::string, std::int64_t>, const RunRecord*> run_of;
  for (const RunRecord& run : runs) {
    check(std::find(kAttentions.begin(), kAttentions.end(), run.attention) != kAttentions.end(),
          run.folder.string(), ": expected attention 'standard' or 'exclusive', got '",
          run.attention, "'");
    check(run_of.emplace(std::pair(run.attention, run.seed), &run).second, run.folder.string(),
          ": a second run with attention '", run.attention, "' and seed ", run.seed,
          "; expected one of each");
    if (std::find(seeds.begin(), seeds.end(), run.seed) == seeds.end()) seeds.push_back(run.seed);
  }

  Json summary = {{"results", {{"standard", Json::object()}, {"exclusive", Json::object()}}},
                  {"difference", Json::object()}};
  for (const Metric& metric : kMetrics) {
    std::array<std::vector<double>, 2> values;
    for (std::size_t side = 0; side < kAttentions.size(); ++side) {
      for (const std::int64_t seed : seeds) {
        const auto run = run_of.find({std::string(kAttentions[side]), seed});
        values[side].push_back(run == run_of.end() ? kNan : value_of(*run->second, metric));
      }
      summary["results"][std::string(kAttentions[side])][metric.key] = aggregate(values[side]);
    }
    std::vector<double> differences;
    for (std::size_t i = 0; i < seeds.size(); ++i)
      differences.push_back(values[1][i] - values[0][i]);
    summary["difference"][metric.key] = aggregate(differences);
  }
  summary["verdict"] = verdict(summary);
  return summary;
}

std::string format_number(double value, int decimals, bool sign) {
  if (!std::isfinite(value)) return "–";
  char digits[400];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), std::abs(value),
                                 std::chars_format::fixed, decimals)
                       .ptr;
  std::string text(digits, end);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  const std::size_t whole = std::min(text.find('.'), text.size());
  for (std::size_t place = whole; place > 3; place -= 3) text.insert(place - 3, 1, ',');
  if (value < 0 && !zero) return "−" + text;
  return sign && !zero ? "+" + text : text;
}

}  // namespace xsa::report
