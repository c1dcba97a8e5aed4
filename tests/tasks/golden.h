// The golden cases: made-up records, and what lm_eval 0.4.13 makes of them.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/json.h"
#include "xsa/tasks/request.h"

namespace xsa::tasks::testing {

inline std::vector<Json> golden_lines(const std::string& key) {
  const std::string path = std::string(XSA_TESTS_FOLDER) + "/golden/evaluation.jsonl";
  std::ifstream file(path);
  check(file.is_open(), path, ": cannot open");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);)
    if (Json json = Json::parse(line); json.contains(key)) lines.push_back(std::move(json));
  return lines;
}

/// The made-up score of the golden cases: -(1 + (id mod 97) / 32), summed; greedy where the sum of
/// the ids is even.
inline Score made_up_score(const std::vector<text::Token>& ids) {
  Score score;
  std::uint64_t sum = 0;
  for (const text::Token id : ids) {
    score.log_likelihood -= 1 + static_cast<double>(id % 97) / 32;
    sum += id;
  }
  score.greedy = sum % 2 == 0;
  return score;
}

}  // namespace xsa::tasks::testing
