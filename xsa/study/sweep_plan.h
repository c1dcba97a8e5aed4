// A sweep as a recipe describes it, and the trainings that it consists of. Pure: nothing here runs
// or writes. docs/sweep.md has the grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xsa/study/recipe.h"

namespace xsa::study {

struct SweepValue {
  std::string label;
  Json settings;  // {"train.lr": 0.0005}: all that this value sets
};

struct SweepAxis {
  std::string name;   // as in labels and folders
  std::string label;  // for people
  std::vector<SweepValue> values;
};

/// The rule of Fig. 3: axis `of` is swept only where the axes of `found_with` have these values;
/// the best of it, on its own for each value of every other axis, is then used for the rest.
struct ReuseBest {
  std::string of;
  std::map<std::string, std::string> found_with;
};

struct Sweep {
  Recipe base;
  std::string title, figure;
  std::string note;  // what was fitted to the overrides, for people
  std::vector<std::int64_t> seeds;
  std::vector<SweepAxis> axes;
  std::optional<ReuseBest> reuse_best;
};

/// One training.
struct SweepPoint {
  Json labels = Json::object();    // {"lr": "5e-4", "attention": "standard"}, in the axes' order
  Json settings = Json::object();  // what its labels set
  std::int64_t seed = 0;

  /// "lr=5e-4,attention=standard,seed=1337"
  std::string name() const;
};

inline constexpr std::int64_t kMaxSweepPoints = 1000;

/// Reads a recipe that has a table [sweep]. `seeds` overrides its number. Throws UsageError, with
/// the nearest match, for anything that the grammar, or a setting's range, does not allow.
Sweep load_sweep(const std::string& file, const std::vector<Override>& overrides,
                 std::optional<std::int64_t> seeds);

/// Every point, or with reuse_best those that find the best.
std::vector<SweepPoint> first_points(const Sweep& sweep);

/// The final validation loss of a point; nothing if it failed.
using LossOf = std::function<std::optional<double>(const SweepPoint&)>;

/// The points that use the best: the lowest mean over the seeds, of values without a failed seed.
/// Where no value is left, or first_points have not been trained yet (loss gives nothing), the
/// point lacks the axis `of` and so cannot be trained.
std::vector<SweepPoint> later_points(const Sweep& sweep, const LossOf& loss);

/// The recipe of one training.
train::RunConfig run_config(const Sweep& sweep, const SweepPoint& point);

/// A number's shortest text: 0.0005 is "5e-4", 0.25 is "0.25".
std::string short_number(double value);

}  // namespace xsa::study
