// The one rule that says which results may stand together. Results stand in one average, margin or
// verdict only if everything that can change them is equal: the settings, the data, what was
// measured, the arithmetic. A run records all of it in its summary.json as "conditions", a flat
// object:
//   {"train.lr": 0.002, "data_sha256": "1f3a...", "train.eval_rows": 64, "diagnose.sequences": 64}
// A measured number stands under the setting that asks for it, and what a setting only names stands
// by the hash of its content.
#pragma once

#include <string>
#include <vector>

#include "xsa/base/fields.h"
#include "xsa/base/json.h"

namespace xsa {

struct Conditions {
  Json values = Json::object();
  /// Whether a run recorded all of them. If not, its recipe stands in, and what it does not name is
  /// not known to differ.
  bool whole = true;
};

/// A condition that two results do not share. A value is JSON's text, "nothing" where there is
/// none.
struct Difference {
  std::string name, there, here;
};

/// Seeds and the two kinds of attention differ on purpose: an average is over seeds, a margin is
/// between the kinds.
inline const std::vector<std::string> kSeed = {"train.seed"};
inline const std::vector<std::string> kSeedAndAttention = {"train.seed", "model.attention"};

/// What two results do not share, in the order of the names; empty if they may stand together.
std::vector<Difference> differences(const Conditions& there, const Conditions& here,
                                    const std::vector<std::string>& apart_from = {});

/// Of a run, from its recipe.json and its summary.json (null: not finished). A run that recorded
/// none has its recipe, and the data and the rows that its summary names.
Conditions conditions_of(const Json& recipe, const Json& summary);

/// Those of the model that a run trained: without what the run measured of it.
Json without_measured(const Json& values);

/// A value in words: JSON's text, a hash's beginning, or "nothing".
std::string shown_condition(const Conditions& conditions, const std::string& name);

/// "train.lr (0.001 there, 0.002 HERE), train.steps (...)"
std::string list(const std::vector<Difference>& differences, const std::string& here);

/// Adds the settings of a table that can change a result: {"train.lr": 0.002, ...}.
template <class Config>
void add_conditions(Json& values, const Config& config, const std::string& table) {
  Config::fields(config, [&](const char* name, const auto& value, const char*, const Range& = {},
                             Effect effect = {}) {
    if (effect == Effect::kResults) values[table + "." + name] = value;
  });
}

}  // namespace xsa
