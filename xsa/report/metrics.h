// The figures that a comparison shows, in one list: results, table and page follow it.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "xsa/base/json.h"

namespace xsa::report {

inline constexpr std::array<std::string_view, 2> kAttentions = {"standard", "exclusive"};

/// As figures and tables call it.
inline std::string shown_attention(std::string_view attention) {
  return attention == "exclusive" ? "XSA" : std::string(attention);
}

struct Metric {
  const char* key;    // in summary.json, or in each layer of diagnose.json
  const char* label;  // for people
  const char* unit;
  int decimals;
  bool diagnosed;  // a mean over diagnose.json's layers
  double scale = 1;
};

inline constexpr std::array kMetrics = {
    Metric{"validation_loss", "validation loss", "nats/token", 4, false},
    Metric{"bits_per_byte", "bits per byte", "", 4, false},
    Metric{"train_loss", "training loss", "nats/token", 4, false},
    Metric{"tokens_per_s", "training speed", "tokens/s", 0, false},
    Metric{"peak_tensor_bytes", "peak tensor memory", "MiB", 1, false, 1.0 / (1 << 20)},
    Metric{"value_cosine", "cosine of values with one another", "", 3, true},
    Metric{"attention_diagonal", "attention to the own key", "", 3, true},
    Metric{"output_value_cosine", "cosine of output y and own value", "", 3, true},
    Metric{"final_value_cosine", "the same after the exclusion", "", 3, true},
};

/// A member that is a number, else NaN.
inline double number_at(const Json& json, std::string_view key) {
  const auto member = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && member != json.end() && member->is_number()
             ? member->get<double>()
             : std::numeric_limits<double>::quiet_NaN();
}

/// Of a figure in diagnose.json's layers; NaN where there are none, or one lacks it.
inline double mean_over_layers(const Json& diagnosis, std::string_view key) {
  if (!diagnosis.is_object() || !diagnosis.contains("layers") || diagnosis["layers"].empty())
    return std::numeric_limits<double>::quiet_NaN();
  const Json& layers = diagnosis["layers"];
  double sum = 0;
  for (const Json& layer : layers) sum += number_at(layer, key);
  return sum / static_cast<double>(layers.size());
}

inline Json or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// "–" for what is not finite. The minus is U+2212; `sign` adds a plus.
std::string format_number(double value, int decimals, bool sign = false);

}  // namespace xsa::report
