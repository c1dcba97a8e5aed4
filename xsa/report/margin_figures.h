// What the figures of margins share: the groups that have one, their table, what is seen in them.
#pragma once

#include <string>
#include <vector>

#include "xsa/report/figures.h"

namespace xsa::report {

/// With four decimals.
std::string four(double value);

std::vector<double> values_of(const BySeed& losses);

/// Of final validation losses.
Margin margin_in(const Group& group);

/// The groups that have runs of both attentions at a seed.
std::vector<const Group*> pairs_of(const Study& study);

/// A row a group and attention; losses against the first row's.
Table variants_table(const Study& study);

/// The baseline's final loss along the last axis, a line for each setting of the others: where
/// Fig. 3's learning rates come from.
void add_search_figure(const Study& study, std::vector<Figure>& figures);

/// Without the columns in which nothing is known, as p values of few seeds.
Table without_unknown(const Table& table);

/// What a caption adds where no setting has two seeds.
std::string chance_text(const Study& study);

/// A figure of this study: number, title, and id ("fig4" -> "fig4-rates").
Figure start(const Study& study, const char* id, const char* number, const std::string& title);

/// Adds it with its table of margins; where it has no caption, that says how often XSA is ahead, at
/// `what` (plural).
void add_margin_figure(Figure figure, const Study& study, const char* what,
                       std::vector<Figure>& figures);

}  // namespace xsa::report
