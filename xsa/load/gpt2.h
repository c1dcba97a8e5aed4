// GPT-2 in Hugging Face's format as a Gpt. What config.json says is honoured or refused; nothing
// that changes the mathematics is passed over.
#pragma once

#include <string>

#include "xsa/base/json.h"
#include "xsa/checkpoint/hugging_face.h"
#include "xsa/model/gpt.h"

namespace xsa::load {

/// The configuration that is this GPT-2. `name` is config.json's, for error texts. Throws Error
/// naming the setting, what is known and what came.
model::ModelConfig gpt2_config(const Json& config, const std::string& name);

/// Weights as fp32, from F64, F32, F16 or BF16. Throws Error naming a tensor that is missing, of
/// another shape, not finite, or not GPT-2's.
model::Gpt gpt2(const checkpoint::HuggingFaceFolder& folder);

}  // namespace xsa::load
