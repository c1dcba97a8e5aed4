// The paper's figures and tables from the parts of a set, in its arrangement. Those without data
// are left out.
#pragma once

#include <string>
#include <vector>

#include "xsa/report/figure.h"
#include "xsa/report/parts.h"

namespace xsa::report {

/// All of them, in the paper's order; of one study alone, its own figure before Fig. 1.
std::vector<Figure> figures_of(const Parts& parts);

// By subject: each appends what it has data for.
void add_layer_figures(const Parts& parts,
                       std::vector<Figure>& figures);  // Fig. 1 and what follows
void add_block_figures(const Parts& parts, std::vector<Figure>& figures);  // Fig. 2
void add_loss_figures(const Parts& parts, std::vector<Figure>& figures);   // Fig. 3
void add_task_tables(const Parts& parts, std::vector<Figure>& figures);    // Table 2
void add_sweep_figures(const Parts& parts, std::vector<Figure>& figures);  // Fig. 4 to 6, others

/// Mean and, from two values on, mean -+ sample standard deviation.
void add_point(Trace& trace, const Json& x, const std::vector<double>& values);

/// What the columns of a table of margins mean.
extern const char* const kMarginNote;

/// Letters, digits and '-' alone, for a file's name.
std::string slug(const std::string& text);

}  // namespace xsa::report
