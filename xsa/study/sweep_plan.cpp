#include "xsa/study/sweep_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"

namespace xsa::study {
namespace {

const std::vector<std::string> kFigures = {"fig3", "fig4", "fig5", "fig6", "variants"};

/// What [sweep] holds beside its axes and reuse_best.
struct SweepConfig {
  std::string title, figure;
  std::int64_t seeds = 1;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("title", self.title, "heading of its page");
    field("figure", self.figure, "figure of the paper that it repeats");
    field("seeds", self.seeds, "trainings of each point, with train.seed, train.seed + 1, ...",
          at_least(1));
  }
};

void check_keys(const Json& table, const std::string& where,
                const std::vector<std::string>& known) {
  check_usage(table.is_object(), where, ": expected a table, got ", table.dump());
  for (const auto& [key, value] : table.items())
    check_usage(std::count(known.begin(), known.end(), key) > 0, where, ": unknown key '", key, "'",
                did_you_mean(key, known));
}

std::string text_at(const Json& table, const char* key, const std::string& where) {
  const Json value = table.value(key, Json(nullptr));
  check_usage(value.is_string() && !value.get_ref<const std::string&>().empty(), where, ".", key,
              ": expected a text in quotes, got ", value.is_null() ? "none" : value.dump());
  return value.get<std::string>();
}

const Json& list_at(const Json& table, const char* key, const std::string& where) {
  const auto found = table.find(key);
  check_usage(found != table.end() && found->is_array() && !found->empty(), where, ".", key,
              ": expected a list of at least one value, got ",
              found == table.end() ? "none" : found->dump());
  return *found;
}

std::string label_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? short_number(value.get<double>()) : value.dump();
}

/// Labels as they stand in a folder's name.
std::string file_name(std::string label) {
  for (char& c : label) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '.' && c != '_' && c != '+' && c != '-') c = '-';
  }
  return label;
}

/// model.context = 64 without quotes is a table in TOML, and as good.
void flatten_settings(const Json& table, const std::string& before, Json& settings) {
  for (const auto& [key, value] : table.items()) {
    if (before.empty() && key == "label") continue;
    const std::string name = before.empty() ? key : before + "." + key;
    if (value.is_object())
      flatten_settings(value, name, settings);
    else
      settings[name] = value;
  }
}

/// Tries a value on the base recipe: an unknown field or a value out of range ends here.
void check_settings(const Recipe& base, const Json& settings, const std::string& where) {
  for (const auto& [name, value] : settings.items()) {
    check_usage(name != "train.seed", where, ": train.seed is not an axis; seeds = N in [sweep] ",
                "trains each point with train.seed, train.seed + 1, ...");
    check_usage(!name.starts_with("compare.") && !name.starts_with("diagnose."), where, ": ", name,
                " changes no training; expected a setting of model, data or train");
    Recipe tried = base;
    try {
      apply_setting(tried, name, value);
    } catch (const UsageError& error) {
      throw UsageError(cat(where, ": ", error.what()));
    }
  }
}

SweepAxis read_axis(const Json& table, const std::string& where, const Recipe& base) {
  check_keys(table, where, {"name", "label", "field", "values", "settings"});
  SweepAxis axis{.name = text_at(table, "name", where)};
  check_usage(axis.name == file_name(axis.name) && axis.name != "seed", where,
              ".name: expected letters, digits and '-', other than 'seed', got '", axis.name, "'");
  const std::string here = cat(where, " '", axis.name, "'");
  axis.label = table.contains("label") ? text_at(table, "label", here) : axis.name;
  check_usage(table.contains("field") != table.contains("settings"), here,
              ": expected either field and values, or settings");
  if (table.contains("field")) {
    const std::string field = text_at(table, "field", here);
    for (const Json& value : list_at(table, "values", here))
      axis.values.push_back({label_of(value), Json{{field, value}}});
  } else {
    check_usage(!table.contains("values"), here, ": values belong to a field, not to settings");
    for (const Json& entry : list_at(table, "settings", here)) {
      check_usage(entry.is_object(), here, ".settings: expected tables as {label = \"64\", ",
                  "\"model.context\" = 64}, got ", entry.dump());
      SweepValue value{.label = text_at(entry, "label", here + ".settings"),
                       .settings = Json::object()};
      flatten_settings(entry, "", value.settings);
      axis.values.push_back(value);
    }
  }
  std::map<std::string, std::string> label_of_folder;
  for (const SweepValue& value : axis.values) {
    const auto [other, fresh] = label_of_folder.emplace(file_name(value.label), value.label);
    check_usage(fresh, here, ": the labels '", other->second, "' and '", value.label,
                "' name the same folder, '", other->first,
                "'; make them differ in letters or digits");
    check_settings(base, value.settings, cat(here, ", '", value.label, "'"));
  }
  return axis;
}

const SweepAxis& find_axis(const Sweep& sweep, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const SweepAxis& axis : sweep.axes) {
    if (axis.name == name) return axis;
    names.push_back(axis.name);
  }
  throw UsageError(cat(where, ": no axis '", name, "'", did_you_mean(name, names)));
}

ReuseBest read_reuse_best(const Json& table, const Sweep& sweep) {
  const std::string where = "sweep.reuse_best";
  check_keys(table, where, {"of", "found_with"});
  ReuseBest rule{.of = text_at(table, "of", where)};
  find_axis(sweep, rule.of, where + ".of");
  const Json found_with = table.value("found_with", Json::object());
  check_usage(found_with.is_object() && !found_with.empty(), where,
              ".found_with: expected a table as {attention = \"standard\"}, got ",
              found_with.dump());
  for (const auto& [name, value] : found_with.items()) {
    const SweepAxis& axis = find_axis(sweep, name, where + ".found_with");
    check_usage(name != rule.of, where, ".found_with: '", name,
                "' is the axis whose best is sought");
    const std::string label = label_of(value);
    std::vector<std::string> labels;
    for (const SweepValue& candidate : axis.values) labels.push_back(candidate.label);
    check_usage(std::count(labels.begin(), labels.end(), label) > 0, where, ".found_with: axis '",
                name, "' has no value '", label, "'", did_you_mean(label, labels));
    rule.found_with[name] = label;
  }
  return rule;
}

/// No field is set twice: by two axes, or by an axis and the command line.
void check_each_field_once(const Sweep& sweep, const std::vector<Override>& overrides) {
  std::map<std::string, std::string> owner;
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepValue& value : axis.values) {
      for (const auto& [field, setting] : value.settings.items()) {
        const auto [entry, fresh] = owner.emplace(field, axis.name);
        check_usage(fresh || entry->second == axis.name, "sweep.axes: both '", entry->second,
                    "' and '", axis.name, "' set ", field);
      }
    }
  }
  for (const auto& [field, text] : overrides) {
    check_usage(!field.starts_with("compare."), "--", field,
                " changes no sweep; --seeds N trains each point N times");
    const auto axis = owner.find(field);
    check_usage(axis == owner.end(), "--", field, ": axis '",
                axis == owner.end() ? "" : axis->second,
                "' of this sweep sets it; change the axis in a recipe of your own");
  }
}

/// Calls visit(point) for every combination of values that `wanted` lets through, axis by axis; the
/// last one turns fastest, seeds aside.
template <class Wanted, class Visit>
void for_each_point(const Sweep& sweep, const Wanted& wanted, const Visit& visit) {
  std::vector<std::size_t> at(sweep.axes.size(), 0);
  for (;;) {
    SweepPoint point;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const SweepAxis& axis = sweep.axes[i];
      if (!wanted(axis.name)) continue;
      point.labels[axis.name] = axis.values[at[i]].label;
      point.settings.update(axis.values[at[i]].settings);
    }
    visit(point);
    std::size_t turning = at.size();
    while (turning > 0) {
      --turning;
      if (wanted(sweep.axes[turning].name) && ++at[turning] < sweep.axes[turning].values.size())
        break;
      at[turning] = 0;
      if (turning == 0) return;
    }
    if (at.empty()) return;
  }
}

bool finds_the_best(const Sweep& sweep, const SweepPoint& point) {
  const auto& wanted = sweep.reuse_best->found_with;
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
    return point.labels.at(entry.first) == entry.second;
  });
}

void add_seeds(const Sweep& sweep, SweepPoint point, std::vector<SweepPoint>& points) {
  for (const std::int64_t seed : sweep.seeds) {
    point.seed = seed;
    points.push_back(point);
  }
}

/// `point` with the value of the axis `of`, in the axes' order.
SweepPoint with_value(const Sweep& sweep, const SweepPoint& point, const SweepValue& best) {
  SweepPoint whole{.seed = point.seed};
  for (const SweepAxis& axis : sweep.axes)
    whole.labels[axis.name] =
        axis.name == sweep.reuse_best->of ? Json(best.label) : point.labels.at(axis.name);
  whole.settings = point.settings;
  whole.settings.update(best.settings);
  return whole;
}

/// For a combination of the other axes; nullptr where nothing was found.
const SweepValue* best_value(const Sweep& sweep, const SweepPoint& point, const LossOf& loss) {
  SweepPoint finder = point;
  for (const auto& [name, label] : sweep.reuse_best->found_with) finder.labels[name] = label;
  const SweepAxis& axis = find_axis(sweep, sweep.reuse_best->of, "");
  const SweepValue* best = nullptr;
  double lowest = INFINITY;
  for (const SweepValue& value : axis.values) {
    double sum = 0;
    for (const std::int64_t seed : sweep.seeds) {
      finder.seed = seed;
      sum += loss(with_value(sweep, finder, value)).value_or(INFINITY);
    }
    if (sum >= lowest || !std::isfinite(sum)) continue;
    lowest = sum;
    best = &value;
  }
  return best;
}

}  // namespace

std::string SweepPoint::name() const {
  std::string text;
  for (const auto& [axis, label] : labels.items())
    text += cat(axis, "=", file_name(label.get<std::string>()), ",");
  return cat(text, "seed=", seed);
}

std::string short_number(double value) {
  const auto write = [&](std::chars_format format) {
    char text[400];
    const auto end = std::to_chars(text, text + sizeof text, value, format).ptr;
    return std::string(text, end);
  };
  const std::string fixed = write(std::chars_format::fixed);
  std::string scientific = write(std::chars_format::scientific);  // "5e-04"
  const std::size_t e = scientific.find('e');
  if (e == std::string::npos) return fixed;
  if (scientific[e + 1] == '+') scientific.erase(e + 1, 1);
  const std::size_t digits = e + (scientific[e + 1] == '-' ? 2 : 1);
  while (scientific[digits] == '0' && digits + 1 < scientific.size()) scientific.erase(digits, 1);
  return scientific.size() < fixed.size() ? scientific : fixed;
}

Sweep load_sweep(const std::string& name, const std::vector<Override>& overrides,
                 std::optional<std::int64_t> seeds) {
  RecipeFile file = read_recipe_file(name);
  check_usage(file.tables.contains("sweep"), file.path.string(),
              ": expected a table [sweep] with [[sweep.axes]], found none; xsa train and xsa "
              "compare run other recipes");
  Json table = file.tables["sweep"];
  file.tables.erase("sweep");
  Sweep sweep{.base = recipe_from(file)};
  try {
    check_usage(table.is_object(), "sweep: expected a table, got ", table.dump());
    const Json axes = table.value("axes", Json::array());
    const Json reuse_best = table.value("reuse_best", Json());
    table.erase("axes");
    table.erase("reuse_best");
    SweepConfig config;
    apply_json(config, table, "sweep");
    check_usage(
        config.figure.empty() || std::count(kFigures.begin(), kFigures.end(), config.figure) > 0,
        "sweep.figure: expected fig3, fig4, fig5, fig6, variants, or none, got '", config.figure,
        "'", did_you_mean(config.figure, kFigures));
    sweep.title = config.title;
    sweep.figure = config.figure;
    const std::int64_t count = seeds.value_or(config.seeds);
    check_usage(count >= 1, "seeds: expected at least 1, got ", count);

    check_usage(axes.is_array() && !axes.empty(),
                "sweep.axes: expected at least one [[sweep.axes]], got ", axes.dump());
    // Axes may only be valid together with the overrides, e.g. of the model's sizes.
    for (const Override& setting : overrides) apply_override(sweep.base, setting);
    take_origin(sweep.base, file, overrides);
    sweep.note = fit_warmup(sweep.base, file, overrides);
    double points = static_cast<double>(count);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      SweepAxis axis = read_axis(axes[i], cat("sweep.axes[", i, "]"), sweep.base);
      for (const SweepAxis& other : sweep.axes)
        check_usage(other.name != axis.name, "sweep.axes: two axes with the name '", axis.name,
                    "'");
      points *= static_cast<double>(axis.values.size());
      sweep.axes.push_back(std::move(axis));
    }
    check_usage(points <= kMaxSweepPoints, "expected at most ", kMaxSweepPoints, " points, got ",
                short_number(points), " (the axes' values times ", count,
                " seeds); make several sweeps of it");
    for (std::int64_t i = 0; i < count; ++i) sweep.seeds.push_back(sweep.base.run.train.seed + i);
    if (!reuse_best.is_null()) sweep.reuse_best = read_reuse_best(reuse_best, sweep);
    check_each_field_once(sweep, overrides);
    for (const SweepPoint& point : first_points(sweep))
      check_usage(point.name().size() < 200, "the labels of '", point.name(),
                  "' are too long for a folder's name; shorten them");
  } catch (const UsageError& error) {
    throw UsageError(cat(file.path.string(), ": ", error.what()));
  }
  return sweep;
}

std::vector<SweepPoint> first_points(const Sweep& sweep) {
  std::vector<SweepPoint> points;
  for_each_point(
      sweep, [](const std::string&) { return true; },
      [&](const SweepPoint& point) {
        if (!sweep.reuse_best || finds_the_best(sweep, point)) add_seeds(sweep, point, points);
      });
  return points;
}

std::vector<SweepPoint> later_points(const Sweep& sweep, const LossOf& loss) {
  std::vector<SweepPoint> points;
  if (!sweep.reuse_best) return points;
  for_each_point(
      sweep, [&](const std::string& name) { return name != sweep.reuse_best->of; },
      [&](const SweepPoint& point) {
        if (finds_the_best(sweep, point)) return;
        const SweepValue* const best = best_value(sweep, point, loss);
        add_seeds(sweep, best == nullptr ? point : with_value(sweep, point, *best), points);
      });
  return points;
}

train::RunConfig run_config(const Sweep& sweep, const SweepPoint& point) {
  Recipe recipe = sweep.base;
  for (const auto& [name, value] : point.settings.items()) apply_setting(recipe, name, value);
  recipe.run.train.seed = point.seed;
  return recipe.run;
}

}  // namespace xsa::study
