// What a task asks of a model, and what the model answers. Everything here agrees with
// lm-evaluation-harness 0.4.13 (docs/evaluation.md): text, token ids, order, metrics. No model and
// no Torch: who scores the requests includes this header and gives back one Score for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/text/tokenizer.h"

namespace xsa::tasks {

/// The log-likelihood of one continuation after one context.
struct Request {
  std::string task;
  std::int64_t index = 0;   // of the record in the task's evaluation split, from 0
  std::int64_t choice = 0;  // of the record's choices, from 0
  /// As the task words them: the continuation begins with the delimiter (" ").
  std::string context, continuation;
  /// What the model sees is context_ids ++ continuation_ids, uncut; neither is ever empty. White
  /// space that ends the context has moved to the continuation; the choices of a record share
  /// equal context_ids, except in WinoGrande.
  std::vector<text::Token> context_ids, continuation_ids;
};

/// The answer to a request.
struct Score {
  double log_likelihood = 0;  // sum over continuation_ids, natural logarithm, fp32 or better
  bool greedy = false;        // every continuation token is the model's first choice at its place
};

/// A record with its requests, in the order of its choices.
struct Sample {
  std::int64_t index = 0;
  Json record;            // as read, and what the task adds (HellaSwag: query, choices, gold)
  std::int64_t gold = 0;  // the right choice; 0 for LAMBADA, which has only one
  std::string target;     // as the harness's sample log names the right answer
  /// Characters (code points) of each choice without its delimiter: what acc_norm divides by.
  std::vector<std::int64_t> lengths;
  std::vector<Request> requests;
};

/// A task with its records, ready to be scored. All requests of all tasks, in this order, are what
/// --dump-requests writes and what scores are handed back in.
struct TaskSamples {
  std::string task;
  std::vector<std::string> files;  // that the records were read from
  std::string split;               // that they hold; "" where a file was named
  std::int64_t records = 0;        // in these files; samples may be fewer (--limit)
  std::vector<Sample> samples;
};

/// One step of a rolling log-likelihood: the model sees context ++ predicted[:-1] and is asked for
/// every predicted token.
struct Window {
  std::vector<text::Token> context, predicted;
};

}  // namespace xsa::tasks
