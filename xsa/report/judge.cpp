#include "xsa/report/judge.h"

#include <array>
#include <cmath>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/report/comparison.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

std::string signed4(double value) { return format_number(value, 4, /*sign=*/true); }

/// The seeds' differences and what they allow to say about the mean.
struct Evidence {
  std::size_t pairs = 0, lower = 0, missing = 0;
  double mean = 0, spread = 0;
  double margin = 0;  // half the 95 % interval; the spread itself of two seeds; 0 with one
};

Evidence weigh(const Json& difference) {
  Evidence evidence;
  for (const Json& value : difference.at("values")) {
    if (!value.is_number()) {
      ++evidence.missing;
      continue;
    }
    ++evidence.pairs;
    evidence.lower += value.get<double>() < 0;
  }
  if (evidence.pairs == 0) return evidence;
  evidence.mean = number_at(difference, "mean");
  evidence.spread = number_at(difference, "spread");
  if (evidence.pairs == 2) evidence.margin = evidence.spread;
  if (evidence.pairs >= 3) {
    const auto count = static_cast<double>(evidence.pairs);
    evidence.margin = student_t95(static_cast<std::int64_t>(evidence.pairs) - 1) * evidence.spread /
                      std::sqrt(count);
  }
  return evidence;
}

Outcome outcome_of(const Evidence& evidence) {
  const double size = std::abs(evidence.mean);
  if (evidence.pairs == 0) return Outcome::kUnknown;
  if (size <= evidence.margin && size + evidence.margin >= kSmallDifference)
    return Outcome::kUndecided;
  if (size < kSmallDifference) return Outcome::kNoDifference;
  return evidence.mean < 0 ? Outcome::kLower : Outcome::kHigher;
}

std::string headline(Outcome outcome, const Evidence& evidence) {
  const bool tested = evidence.pairs >= 3;
  switch (outcome) {
    case Outcome::kLower:
      return tested ? "XSA wins" : "XSA ended with the lower validation loss";
    case Outcome::kHigher:
      return tested ? "XSA loses" : "XSA ended with the higher validation loss";
    case Outcome::kUndecided:
      return std::abs(evidence.mean) <= evidence.spread
                 ? "The difference is within the spread of the seeds"
                 : "Too few seeds to tell";
    case Outcome::kNoDifference:
      return "No difference to speak of";
    case Outcome::kUnknown:
      return "No verdict";
  }
  throw Error("verdict: unknown outcome");
}

/// What chance among seeds has to say.
std::string certainty(const Evidence& evidence, Outcome outcome) {
  if (evidence.pairs == 1)
    return " One seed only, so no spread is known: part of this may be chance (--seeds 3 would "
           "tell).";
  const std::string all =
      cat(" XSA was lower with ", evidence.lower, " of ", evidence.pairs, " seeds");
  if (evidence.pairs == 2)
    return cat(all, "; the two differences spread by ", format_number(evidence.spread, 4),
               ". Two seeds are too few for an interval (--seeds 3 gives one).");
  const std::string interval =
      cat(all, "; 95 % paired t interval ", signed4(evidence.mean - evidence.margin), " to ",
          signed4(evidence.mean + evidence.margin));
  switch (outcome) {
    case Outcome::kUndecided:
      return interval + ": it contains 0, so these runs do not tell which is better.";
    case Outcome::kNoDifference:
      return interval + ".";
    default:
      return interval + ": it leaves out 0, so the choice of seeds hardly explains the difference.";
  }
}

/// The mean validation loss over the seeds that have both runs.
double mean_of_pairs(const Json& summary, const char* attention) {
  const Json& values = summary.at("results").at(attention).at("validation_loss").at("values");
  const Json& differences = summary.at("difference").at("validation_loss").at("values");
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!differences[i].is_number()) continue;
    sum += values[i].get<double>();
    ++pairs;
  }
  return sum / pairs;
}

}  // namespace

Judgement judge(const Json& summary) {
  const Json& difference = summary.at("difference").at("validation_loss");
  const Evidence evidence = weigh(difference);
  const Outcome outcome = outcome_of(evidence);
  Judgement result{outcome, headline(outcome, evidence), ""};
  if (evidence.pairs == 0) {
    result.detail = "no seed has a finite validation loss of both runs.";
    return result;
  }
  const auto loss_of = [&](const char* attention) {
    return format_number(mean_of_pairs(summary, attention), 4);
  };
  result.detail =
      cat(loss_of("exclusive"), " against ", loss_of("standard"), " nats a token",
          evidence.pairs > 1 ? " on average" : "", ", a difference of ", signed4(evidence.mean),
          " (perplexity ", format_number(100 * std::expm1(evidence.mean), 1, true), " %).",
          certainty(evidence, outcome));
  if (evidence.missing > 0)
    result.detail +=
        cat(" Left out: ", evidence.missing, evidence.missing == 1 ? " seed" : " seeds",
            " without a finite validation loss of both runs.");
  return result;
}

std::string verdict(const Json& summary) {
  const Judgement judgement = judge(summary);
  return judgement.headline + ": " + judgement.detail;
}

double student_t95(std::int64_t freedom) {
  constexpr std::array<double, 8> kSmall = {12.7062, 4.3027, 3.1824, 2.7764,
                                            2.5706,  2.4469, 2.3646, 2.3060};
  check(freedom >= 1, "student_t95: expected at least 1 degree of freedom, got ", freedom);
  if (freedom <= static_cast<std::int64_t>(kSmall.size()))
    return kSmall[static_cast<std::size_t>(freedom) - 1];
  // Cornish-Fisher expansion about the normal's 1.95996 (Abramowitz and Stegun 26.7.5); error
  // below 1e-4 from 9 degrees on.
  const double inverse = 1 / static_cast<double>(freedom);
  return 1.95996 +
         inverse * (2.37227 + inverse * (2.82250 + inverse * (2.55585 + inverse * 1.58953)));
}

}  // namespace xsa::report
