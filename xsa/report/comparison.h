// From run folders (docs/run-folder.md) to figures, words, a table and one self-contained page.
// docs/report.md says what the words mean. Not for training or measuring: it only reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xsa/base/conditions.h"
#include "xsa/base/json.h"

namespace xsa::report {

/// What a finished run left: its summary.json and diagnose.json (null where it has none).
struct RunRecord {
  std::string attention;  // "standard" or "exclusive"
  std::int64_t seed = 0;
  std::filesystem::path folder;
  Json summary;
  Json diagnose;
};

/// compare.json's "results", "difference" and "verdict". Values stand in the order in which the
/// seeds first appear; a missing or not finite one is null and enters no mean. A difference needs
/// both runs of a seed. Throws Error for an unknown attention or a run given twice.
Json summarize_runs(const std::vector<RunRecord>& runs);

/// What the figures of summarize_runs say in words: a headline, a colon, and the reasons.
std::string verdict(const Json& summary);

/// The figures of summarize_runs as lines of aligned UTF-8 text; with `colour`, ANSI bold and dim.
std::string terminal_table(const Json& summary, bool colour = false);

/// One curve of metrics.jsonl; columns of equal length, NaN where unknown. `loss` is the value of
/// curves of other figures as well.
struct Curve {
  std::vector<double> step, tokens, elapsed_s, loss;
};

/// A task or a text, and the figure: {"piqa", "acc"}.
using EvaluationKey = std::pair<std::string, std::string>;

struct Run {
  RunRecord record;
  Json recipe;
  Curve train, validation;
  std::map<EvaluationKey, Curve> evaluations;  // of the lines of type "eval"
  std::vector<Json> diagnoses;                 // the lines of type "diagnose"

  /// What its figures depend on (xsa/base/conditions.h).
  Conditions conditions() const { return conditions_of(recipe, record.summary); }
};

struct Comparison {
  std::filesystem::path folder;
  Json info;  // compare.json
  std::vector<Run> runs;
};

/// Reads a comparison folder. Throws Error naming the file (and line) that is missing or broken.
/// Throws as well, naming what differs, where its runs do not stand under the same conditions. A
/// run may lack diagnose.json; the last line of metrics.jsonl may be cut short by a kill.
Comparison load_comparison(const std::filesystem::path& folder);

/// The page's HTML around the given plotly.min.js.
std::string render_page(const Comparison& comparison, std::string_view plotly_js);

/// Writes folder/report.html. plotly.min.js comes from the environment's XSA_PLOTLY_JS or from the
/// build's Python; throws Error where there is none.
void write_report(const std::filesystem::path& folder);

}  // namespace xsa::report
