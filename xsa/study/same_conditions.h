// The trainings of one folder that are shown side by side: those that are there must stand under
// the conditions that are asked for (xsa/base/conditions.h). A run measured on 2 rows beside one
// measured on 64, or a text that changed in between, would look like a gain.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "xsa/base/conditions.h"
#include "xsa/data/dataset.h"
#include "xsa/train/config.h"

namespace xsa::study {

/// The train.from of a run's or a comparison's recipe; "" where it began with weights of its own.
std::string begun_from(const Json& recipe);

class SameConditions {
 public:
  /// `folder`: of the comparison or the sweep, in whose recipe.json an older program recorded how
  /// its runs were diagnosed. `source`: the text, for messages.
  SameConditions(std::filesystem::path folder, std::string source);

  /// Notes what a run is to be. `config`: resolved. Throws UsageError where the data are too short.
  void want(const std::string& run, const train::RunConfig& config, const data::Dataset& dataset,
            const Json& measured);
  /// How a run that is there, finished or not, differs from what is wanted of it; a run that is not
  /// there does not. Throws Error for a file of it that cannot be read.
  std::vector<Difference> differences_of(const std::string& run,
                                         const std::filesystem::path& run_folder) const;
  /// Throws unless there are none: UsageError naming them, Error where the text is another.
  void refuse(const std::string& run, const std::vector<Difference>& differences) const;

 private:
  std::filesystem::path folder_;
  std::string source_;
  Json diagnose_ = Json::object();
  std::map<std::string, Json> wanted_;
  std::map<std::string, std::string> from_;  // train.from, by run
};

}  // namespace xsa::study
