// A small random GPT-2 in Hugging Face's format, written by hand; and its mathematics, written once
// more in double from the file's own tensors.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/base/json.h"
#include "xsa/checkpoint/safetensors.h"

namespace xsa::load {

using Tensors = std::map<std::string, at::Tensor>;

inline Json small_config() {
  return {{"model_type", "gpt2"}, {"n_layer", 2},      {"n_embd", 24},
          {"n_head", 3},          {"n_positions", 32}, {"vocab_size", 257}};
}

/// Under transformers' names, with the prefix.
inline Tensors random_tensors(const Json& config) {
  const std::int64_t width = config.value("n_embd", 0);
  const std::int64_t inner =
      config.contains("n_inner") ? config["n_inner"].get<std::int64_t>() : 4 * width;
  at::manual_seed(5);
  Tensors tensors;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> sizes, double mean = 0) {
    tensors["transformer." + name] = at::randn(sizes) * 0.3 + mean;
  };
  add("wte.weight", {config.value("vocab_size", 0), width});
  add("wpe.weight", {config.value("n_positions", 0), width});
  add("ln_f.weight", {width}, 1), add("ln_f.bias", {width});
  for (std::int64_t layer = 0; layer < config.value("n_layer", 0); ++layer) {
    const std::string h = "h." + std::to_string(layer) + ".";
    for (const char* norm : {"ln_1", "ln_2"})
      add(h + norm + ".weight", {width}, 1), add(h + norm + ".bias", {width});
    const auto conv = [&](const char* name, std::int64_t in, std::int64_t out) {
      add(h + name + ".weight", {in, out}), add(h + name + ".bias", {out});
    };
    conv("attn.c_attn", width, 3 * width), conv("attn.c_proj", width, width);
    conv("mlp.c_fc", width, inner), conv("mlp.c_proj", inner, width);
  }
  return tensors;
}

inline void write_tensors(const std::filesystem::path& path, const Tensors& tensors) {
  std::vector<checkpoint::TensorData> data;
  for (const auto& [name, tensor] : tensors) {
    const std::map<at::ScalarType, const char*> types = {{at::kFloat, "F32"},
                                                         {at::kHalf, "F16"},
                                                         {at::kBFloat16, "BF16"},
                                                         {at::kDouble, "F64"},
                                                         {at::kByte, "U8"}};
    data.push_back({name,
                    types.at(tensor.scalar_type()),
                    tensor.sizes().vec(),
                    {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  checkpoint::write_safetensors(path, data);
}

inline void write_folder(const std::filesystem::path& folder, const Json& config,
                         const Tensors& tensors) {
  std::filesystem::create_directories(folder);
  write_json_file(folder / "config.json", config);
  write_tensors(folder / "model.safetensors", tensors);
}

/// tokens [T] -> logits [T, V], double.
inline at::Tensor expected_logits(const Json& config, const Tensors& tensors,
                                  const at::Tensor& tokens) {
  const auto get = [&](const std::string& name) {
    return tensors.at("transformer." + name).to(at::kDouble);
  };
  const auto conv = [&](const std::string& name, const at::Tensor& x) {
    return at::matmul(x, get(name + ".weight")) + get(name + ".bias");
  };
  const auto norm = [&](const std::string& name, const at::Tensor& x) {
    const at::Tensor centred = x - x.mean(-1, true);
    return centred *
               at::rsqrt((centred * centred).mean(-1, true) +
                         config.value("layer_norm_epsilon", 1e-5)) *
               get(name + ".weight") +
           get(name + ".bias");
  };
  const std::int64_t steps = tokens.size(0), heads = config.value("n_head", 0);
  at::Tensor x = get("wte.weight").index_select(0, tokens) + get("wpe.weight").narrow(0, 0, steps);
  for (std::int64_t layer = 0; layer < config.value("n_layer", 0); ++layer) {
    const std::string h = "h." + std::to_string(layer) + ".";
    const std::vector<at::Tensor> parts = conv(h + "attn.c_attn", norm(h + "ln_1", x)).chunk(3, 1);
    const auto split = [&](const at::Tensor& part) {
      return part.reshape({steps, heads, -1}).transpose(0, 1);
    };
    at::Tensor scores = at::matmul(split(parts[0]), split(parts[1]).transpose(1, 2));
    if (config.value("scale_attn_weights", true))
      scores = scores / std::sqrt(static_cast<double>(x.size(1) / heads));
    if (config.value("scale_attn_by_inverse_layer_idx", false))
      scores = scores / static_cast<double>(layer + 1);
    const at::Tensor future = at::ones({steps, steps}, at::kBool).triu(1);
    const at::Tensor y =
        at::matmul(at::softmax(scores.masked_fill(future, -INFINITY), -1), split(parts[2]));
    x = x + conv(h + "attn.c_proj", y.transpose(0, 1).reshape({steps, -1}));
    const at::Tensor inner = conv(h + "mlp.c_fc", norm(h + "ln_2", x));
    const at::Tensor share = config.value("activation_function", "gelu_new") == "gelu"
                                 ? at::erf(inner / std::sqrt(2.0))
                                 : at::tanh(std::sqrt(2 / 3.14159265358979323846) *
                                            (inner + 0.044715 * inner * inner * inner));
    x = x + conv(h + "mlp.c_proj", 0.5 * inner * (1 + share));
  }
  const bool tied = config.value("tie_word_embeddings", true);
  const at::Tensor head = tied ? get("wte.weight") : tensors.at("lm_head.weight").to(at::kDouble);
  return at::matmul(norm("ln_f", x), head.t());
}

}  // namespace xsa::load
