// What a run may do to a folder: never touch one that is not a run's, never replace a run unasked,
// never share one with another process, never go on with another recipe.
#pragma once

#include <filesystem>
#include <string>

#include "xsa/base/conditions.h"
#include "xsa/base/json.h"
#include "xsa/base/owned_folder.h"

namespace xsa::train {

/// Throws UsageError unless the folder is free (missing or empty), or a run's that may be continued
/// or replaced.
void check_run_folder(const std::filesystem::path& folder, bool resume, bool overwrite);

/// Throws UsageError naming every setting that can change a result (Effect in xsa/base/fields.h) in
/// which a saved recipe differs from the one asked for. A setting that the saved one lacks, since
/// it is older, has its default. `owner` is whose recipe that is.
void check_same_recipe(const Json& saved, const Json& wanted, const std::string& owner);

/// The conditions of a finished run, from its recipe.json and summary.json. What an older program
/// did not record counts as `wanted` has it: check_same_recipe has seen the settings.
Conditions recorded(const Json& recipe, const Json& summary, const Json& wanted);

/// Throws UsageError naming what was measured in another way than is asked for; Error where the
/// data are others.
void check_same_conditions(const Conditions& saved, const Json& wanted, const std::string& owner);

/// The same of a run that has not ended, which may be asked to measure more, or less, than at
/// first: only not the same in two ways.
void check_same_so_far(const Json& saved, const Json& wanted, const std::string& owner);

/// The summary.json of a finished run. Throws as check_same_conditions.
Json finished_summary(const std::filesystem::path& folder, const Json& wanted);

/// Removes what a run wrote, recipe.json last, and nothing else.
void clear_run_folder(const std::filesystem::path& folder);

}  // namespace xsa::train
