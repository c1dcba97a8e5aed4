#include "xsa/report/same_conditions.h"

#include <set>
#include <string>
#include <utility>

#include "xsa/base/error.h"

namespace xsa::report {
namespace {

/// Of each class, what sets it apart: {"train.steps 10", "train.steps 60"}.
std::vector<std::string> names_of(const std::vector<Conditions>& classes) {
  std::set<std::string> names;
  for (const Conditions& one : classes)
    for (const Difference& difference : differences(classes.front(), one, kSeedAndAttention))
      names.insert(difference.name);
  std::vector<std::string> texts;
  for (const Conditions& one : classes) {
    std::string text;
    for (const std::string& name : names)
      text += cat(text.empty() ? "" : ", ", name, " ", shown_condition(one, name));
    texts.push_back(text);
  }
  return texts;
}

}  // namespace

std::size_t class_of(const Run& run, std::vector<Conditions>& classes) {
  const Conditions conditions = run.conditions();
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (differences(classes[i], conditions, kSeedAndAttention).empty()) return i;
  classes.push_back(conditions);
  return classes.size() - 1;
}

void split_by_conditions(Study& study) {
  std::vector<Group> groups;
  for (Group& group : study.groups) {
    std::vector<Conditions> classes;
    std::vector<Group> parts;
    for (auto side : {&Group::standard, &Group::exclusive})
      for (Run& run : group.*side) {
        const std::size_t place = class_of(run, classes);
        if (place == parts.size()) parts.push_back({group.labels, {}, {}});
        (parts[place].*side).push_back(std::move(run));
      }
    const std::vector<std::string> names = names_of(classes);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts.size() > 1) parts[i].labels.emplace_back("conditions", names[i]);
      groups.push_back(std::move(parts[i]));
    }
  }
  study.groups = std::move(groups);
}

}  // namespace xsa::report
