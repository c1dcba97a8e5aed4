// An evaluation from requests to results: scores, figures, files.
//
//   OUTPUT/scores.jsonl         a line a request, as they are scored (eval/journal.h)
//   OUTPUT/samples_TASK.jsonl   a line a record, in lm-evaluation-harness's layout
//   OUTPUT/results.json         figures, in its layout; written last
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/eval/scorer.h"
#include "xsa/eval/text_samples.h"
#include "xsa/model/gpt.h"
#include "xsa/tasks/request.h"
#include "xsa/tasks/results.h"

namespace xsa::eval {

/// What is asked: the records of tasks, and texts. Either may be empty.
struct Questions {
  std::vector<tasks::TaskSamples> tasks;
  std::vector<TextSamples> texts;
};

/// Which questions, as a command line or a recipe names them.
struct QuestionOptions {
  std::string tasks;                  // as tasks::parse_tasks; "": none
  std::vector<std::string> data;      // as tasks::parse_places
  std::optional<std::int64_t> limit;  // the first records of each task, windows of each text
  std::vector<std::string> texts;
};

/// Reads all of it, and checks what can be known of it before a model of this context runs: every
/// record, and that no continuation is longer than the context. `warn` as in tasks::load_samples.
Questions load_questions(const QuestionOptions& options, const text::Tokenizer& tokenizer,
                         std::int64_t context,
                         const std::function<void(const std::string& warning)>& warn);

struct EvaluateOptions {
  Budget budget;
  std::filesystem::path output;  // a folder; "": nothing is written, and a stop loses all
  bool overwrite = false;        // what an evaluation left there goes, once all else is checked
  bool progress = true;
  std::int64_t resamples = 100'000;   // of perplexity's standard error
  double loading_seconds = 0;         // what load_questions took, for the record
  std::vector<std::string> warnings;  // that came before, for the record
  tasks::RunFacts facts;              // start and end are filled in
};

/// What figures of these questions depend on beside the model: for each task and text how much of
/// it was asked and a hash of it, the tokenizer and what stands before an empty context, and the
/// type of the arithmetic. Figures stand in one average only where all of it is equal
/// (base/conditions.h). {"eval.piqa.records": 200, "eval.piqa.sha256": "1f3a...", ...}
Json conditions(const Questions& questions, const text::Tokenizer& tokenizer);

/// Scores everything and returns what results.json holds: the harness's layout, and under "xsa"
/// the requests that were cut from the left, what was computed in what time, the tokenizer's rules
/// and the warnings. Nothing in `output` is touched before all of it is checked and held.
/// Throws Interrupted when asked to stop; Error as Scorer, score_all and Journal.
Json evaluate(const model::Gpt& model, const text::Tokenizer& tokenizer, const Questions& questions,
              const EvaluateOptions& options);

/// The figures alone, without standard errors or files, in silence: {"piqa": {"acc": 0.55,
/// "acc_norm": 0.53}, "held_out.txt": {"bits_per_byte": 1.93, ...}}. For a model in training.
/// Nothing where a stop was asked for before the end.
std::optional<Json> figures(const model::Gpt& model, const text::Tokenizer& tokenizer,
                            const Questions& questions, const Budget& budget = {});

}  // namespace xsa::eval
