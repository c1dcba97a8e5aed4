// Operators that register themselves; library.cpp calls each once.
#pragma once

#include <torch/library.h>

namespace xsa::op {

void register_exclude(torch::Library& library);
void register_add_layer_norm(torch::Library& library);
void register_rotary_embedding(torch::Library& library);

}  // namespace xsa::op
