// `xsa eval MODEL`: the half of the command that runs a model.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/eval/evaluate.h"

namespace xsa::cli {

struct EvalArguments {
  std::string model;      // a checkpoint, a run or a Hugging Face folder
  std::string tokenizer;  // "": the model's own
  std::string output;     // folder; "": none
  eval::QuestionOptions questions;
  eval::Budget budget;
  std::int64_t resamples = 100'000;
  std::int64_t threads = 0;  // 0: one a core
  bool json = false, overwrite = false;
};

/// Scores the model and prints table or JSON. Errors as eval::evaluate and load::load.
void evaluate_model(const EvalArguments& arguments);

}  // namespace xsa::cli
