// Who sees what, key by key in the schema's own words: slow, and independent of core/mask.h.
#pragma once

#include <cstdint>

#include "xsa/kernels/attention.h"

namespace xsa::testing {

/// Whether query i of sequence b sees key j.
inline bool sees(const kernels::AttentionParams& p, std::int64_t b, std::int64_t i,
                 std::int64_t j) {
  const std::int64_t own = p.own_offset + i;
  const std::int64_t start = p.key_start ? p.key_start[b] : 0;
  const std::int64_t end = p.key_end ? p.key_end[b] : p.keys;
  if (j < start || j >= end) return false;
  if (p.is_causal && j > own) return false;
  if (j < start + p.num_sink_keys) return true;
  if (p.window && (j - own >= p.window || own - j >= p.window)) return false;
  if (!p.cu_seqlens) return true;
  for (std::int64_t m = 0; m < p.documents; ++m) {
    const auto in_document = [&](std::int64_t n) {
      return p.cu_seqlens[m] <= n && n < p.cu_seqlens[m + 1];
    };
    if (in_document(i)) return in_document(j - p.own_offset);
  }
  return false;
}

}  // namespace xsa::testing
