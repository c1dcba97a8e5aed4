#include "xsa/report/table.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "xsa/report/comparison.h"

namespace xsa::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json two_seeds() {
  std::vector<RunRecord> runs;
  for (const std::int64_t seed : {1, 2}) {
    const double step = static_cast<double>(seed) / 100;
    runs.push_back(
        {"standard",
         seed,
         "s",
         {{"validation_loss", 2.2 + step}, {"tokens_per_s", 20000}, {"peak_tensor_bytes", 3 << 20}},
         nullptr});
    runs.push_back({"exclusive",
                    seed,
                    "e",
                    {{"validation_loss", 2.1 + 3 * step}, {"tokens_per_s", 19000}},
                    nullptr});
  }
  return summarize_runs(runs);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

auto columns_of(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

TEST(TableRows, ShowMeansSpreadsDifferencesAndWhatIsAbsent) {
  const std::vector<Row> rows = table_rows(two_seeds());
  EXPECT_THAT(rows[0], ElementsAre("validation loss (nats/token)", "2.2150 ± 0.0071",
                                   "2.1450 ± 0.0212", "−0.0700 ± 0.0141", "−3.2\u00a0%"));
  EXPECT_THAT(rows[3], ElementsAre("training speed (tokens/s)", "20,000 ± 0", "19,000 ± 0",
                                   "−1,000 ± 0", "−5.0\u00a0%"));
  EXPECT_THAT(rows[4], ElementsAre("peak tensor memory (MiB)", "3.0 ± 0.0", "–", "–", "–"));
}

TEST(TerminalTable, AlignsEveryLine) {
  const std::vector<std::string> lines = lines_of(terminal_table(two_seeds()));
  ASSERT_EQ(lines.size(), 11u);
  for (const std::string& line : lines) EXPECT_EQ(columns_of(line), columns_of(lines[0])) << line;
}

TEST(TerminalTable, HasColourOnlyWhenAsked) {
  EXPECT_THAT(terminal_table(two_seeds()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(terminal_table(two_seeds(), true), HasSubstr("\x1b[1mvalidation loss"));
}

}  // namespace
}  // namespace xsa::report
