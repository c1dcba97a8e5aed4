#include "xsa/model/config.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace xsa::model {
namespace {

constexpr const char* kLayersGrammar =
    "'all', 'first N', 'last N' or different layer numbers as '0,3'";

[[noreturn]] void bad_layers(const ModelConfig& config, const std::string& remedy) {
  throw UsageError(cat("model.exclusive_layers: expected ", kLayersGrammar, " of ", config.layers,
                       " layers, got '", config.exclusive_layers, "'; ", remedy));
}

std::int64_t number(const ModelConfig& config, std::string_view text, std::int64_t min,
                    std::int64_t max) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    bad_layers(config, cat("'", text, "' is not a whole number"));
  if (value < min || value > max)
    bad_layers(config, cat(value, " is not in [", min, ", ", max, "]"));
  return value;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// One flag a layer: is it exclusive?
std::vector<bool> exclusive(const ModelConfig& config) {
  const auto layers = static_cast<std::size_t>(config.layers);
  const std::string_view text = trim(config.exclusive_layers);
  if (text == "all") return std::vector<bool>(layers, true);

  std::vector<bool> flags(layers, false);
  for (const std::string_view end : {"first ", "last "}) {
    if (!text.starts_with(end)) continue;
    const std::int64_t count = number(config, trim(text.substr(end.size())), 1, config.layers);
    if (end == "first ") {
      std::fill_n(flags.begin(), count, true);
    } else {
      std::fill_n(flags.rbegin(), count, true);
    }
    return flags;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::int64_t layer =
        number(config, trim(text.substr(begin, comma - begin)), 0, config.layers - 1);
    if (flags[static_cast<std::size_t>(layer)]) bad_layers(config, cat(layer, " is named twice"));
    flags[static_cast<std::size_t>(layer)] = true;
    begin = comma + 1;
  }
  return flags;
}

constexpr std::int64_t kMaxLayers = 10'000;
constexpr double kMaxParameters = 1e15;  // and so every count of bytes and FLOPs is exact

/// A bound from above, in floating point, where nothing overflows.
double most_parameters(const ModelConfig& config) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = real(config.width), head_dim = real(config.head_dim);
  const double inner = config.feed_forward_width > 0 ? real(config.feed_forward_width) : 4 * width;
  const double keys = real(config.key_heads()) * head_dim;
  const double matrices =
      3 * real(config.heads) * head_dim + 2 * keys + 2 * inner + 4 * real(config.gated_norm);
  const double layer = width * matrices + 2 * keys * real(config.sink_tokens);
  const double positions = config.position == "learned" ? real(config.context) : 0;
  return real(config.layers) * layer + width * (2 * real(config.vocab_size) + positions);
}

}  // namespace

bool ModelConfig::is_exclusive(std::int64_t layer) const {
  check_usage(layer >= 0 && layer < layers, "model: expected a layer in [0, ", layers, "), got ",
              layer);
  return attention == "exclusive" && exclusive(*this)[static_cast<std::size_t>(layer)];
}

double ModelConfig::layer_strength(std::int64_t layer) const {
  return is_exclusive(layer) ? strength : 0.0;
}

void ModelConfig::validate() const {
  ModelConfig in_range;  // a configuration made in code passes the same ranges as a recipe
  apply_json(in_range, to_json(*this), "model");
  check_usage(std::isfinite(strength), "model.strength: expected a finite number, got ", strength);
  check_usage(vocab_size >= 1,
              "model.vocab_size: expected at least 1, got 0; set it from the tokenizer, or give it "
              "in the recipe");
  check_usage(heads % key_heads() == 0, "model.kv_heads: expected a divisor of heads = ", heads,
              ", got ", kv_heads, "; give 0 for as many key/value heads as heads");
  check_usage(position != "rope" || head_dim % 2 == 0,
              "model.head_dim: expected an even number, since RoPE turns pairs, got ", head_dim,
              "; give an even one, or model.position = none");
  check_usage(layers <= kMaxLayers, "model.layers: expected at most ", kMaxLayers, ", got ",
              layers);
  const double parameters = most_parameters(*this);
  check_usage(parameters < kMaxParameters, "model: expected less than ", kMaxParameters,
              " parameters, got about ", parameters,
              "; lower model.width, model.heads, model.layers or the other sizes");
  exclusive(*this);
}

}  // namespace xsa::model
