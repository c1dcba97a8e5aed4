// What a score depends on, as hashes: so that kept scores are never taken for those of another
// model or other requests.
#pragma once

#include <span>
#include <string>

#include "xsa/eval/plan.h"
#include "xsa/model/gpt.h"

namespace xsa::eval {

/// SHA-256 of the configuration and every parameter's name and bits.
std::string fingerprint(const model::Gpt& model);
/// SHA-256 of all ids, and of where one list ends and the next begins.
std::string fingerprint(std::span<const Item> items);

}  // namespace xsa::eval
