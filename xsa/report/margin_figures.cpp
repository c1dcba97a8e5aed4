#include "xsa/report/margin_figures.h"

#include <algorithm>
#include <cmath>

#include "xsa/base/error.h"
#include "xsa/report/metrics.h"

namespace xsa::report {

std::string four(double value) { return format_number(value, 4); }

std::vector<double> values_of(const BySeed& losses) {
  std::vector<double> values;
  for (const auto& [seed, loss] : losses) values.push_back(loss);
  return values;
}

Margin margin_in(const Group& group) {
  return margin_between(final_losses(group.standard), final_losses(group.exclusive));
}

std::vector<const Group*> pairs_of(const Study& study) {
  std::vector<const Group*> pairs;
  for (const Group& group : study.groups)
    if (!margin_in(group).values.empty()) pairs.push_back(&group);
  return pairs;
}

namespace {

std::string range_text(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (values.size() == 1) return "by " + four(values[0]);
  return "by " + four(values.front()) + " to " + four(values.back());
}

/// "XSA ends lower at 3 of 4 sizes, by 0.01 to 0.03 nats a token (not at 2e-3: −0.01)."
std::string ahead_text(const std::vector<const Group*>& groups, const std::string& what) {
  std::vector<double> ahead;
  std::string behind;
  for (const Group* const group : groups) {
    const double mean = margin_in(*group).mean;
    if (mean > 0) {
      ahead.push_back(mean);
    } else {
      behind += (behind.empty() ? "" : "; ") + name_of(group->labels) + ": " + four(mean);
    }
  }
  if (groups.empty()) return "No setting has finished runs of both attentions yet.";
  if (ahead.empty() && groups.size() == 1 && margin_in(*groups[0]).mean < 0)
    return cat("XSA ends with the higher validation loss, by ", four(-margin_in(*groups[0]).mean),
               " nats a token.");
  if (ahead.empty())
    return cat("XSA ends with the lower validation loss at none of ", groups.size(), " ", what,
               ".");
  if (groups.size() == 1)
    return cat("XSA ends with the lower validation loss, ", range_text(ahead), " nats a token.");
  return cat("XSA ends with the lower validation loss at ", ahead.size(), " of ", groups.size(),
             " ", what, ", ", range_text(ahead), " nats a token",
             behind.empty() ? "" : " (not at " + behind + ")", ".");
}

/// Loss of both over the seeds that have both, margin, interval and tests: a row a group with such.
Table margin_table(const std::vector<const Group*>& groups, const std::string& first_head) {
  Table table{{first_head, "seeds", "standard", "±", "XSA", "±", "margin", "±", "95 % from", "to",
               "p, t", "p, sign flips"},
              {}};
  for (const Group* const group : groups) {
    const Margin margin = margin_in(*group);
    std::vector<Cell> row = {{name_of(group->labels)},
                             number_cell(static_cast<double>(margin.values.size()), 0)};
    for (const std::string_view attention : kAttentions) {
      BySeed paired = final_losses(group->runs(attention));
      const BySeed others =
          final_losses(group->runs(attention == "standard" ? "exclusive" : "standard"));
      std::erase_if(paired, [&](const auto& loss) { return !others.contains(loss.first); });
      const Margin losses = margin_of(values_of(paired));
      row.push_back(number_cell(losses.mean, 4));
      row.push_back(number_cell(losses.spread, 4));
    }
    row.push_back(number_cell(margin.mean, 4, true));
    row.push_back(number_cell(margin.spread, 4));
    row.push_back(number_cell(margin.mean - margin.half, 4, true));
    row.push_back(number_cell(margin.mean + margin.half, 4, true));
    row.push_back(chance_cell(margin.t_test));
    row.push_back(chance_cell(margin.sign_flips));
    table.rows.push_back(row);
  }
  return table;
}

bool is_known(const Cell& cell) { return cell.decimals < 0 || std::isfinite(cell.value); }

}  // namespace

Table without_unknown(const Table& table) {
  Table few{{}, std::vector<std::vector<Cell>>(table.rows.size())};
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    if (std::none_of(table.rows.begin(), table.rows.end(),
                     [&](const auto& row) { return is_known(row[i]); }))
      continue;
    few.head.push_back(table.head[i]);
    for (std::size_t row = 0; row < few.rows.size(); ++row)
      few.rows[row].push_back(table.rows[row][i]);
  }
  return few;
}

std::string chance_text(const Study& study) {
  for (const Group& group : study.groups)
    if (std::max(group.standard.size(), group.exclusive.size()) > 1) return "";
  return study.groups.empty() ? "" : " Of one seed, so how much is chance is not known.";
}

Figure start(const Study& study, const char* id, const char* number, const std::string& title) {
  return {slug(cat(id, "-", study.name)), number, title,
          study.title.empty() ? study.name : study.title};
}

void add_margin_figure(Figure figure, const Study& study, const char* what,
                       std::vector<Figure>& figures) {
  const auto pairs = pairs_of(study);
  if (figure.caption.empty()) figure.caption = ahead_text(pairs, what);
  if (!pairs.empty()) figure.caption += chance_text(study);
  figure.table =
      without_unknown(margin_table(pairs, study.axes.empty() ? "" : study.axes[0].second));
  figure.columns = 2;
  figures.push_back(std::move(figure));
}

}  // namespace xsa::report
