// Which keys a query sees: the whole visibility rule, in one place.
//
// A row's visible keys are two ranges, its sink keys and its near keys; either may be empty, and
// they may overlap:
//   every key      lies in [key_start, key_end) of its sequence (all keys by default)
//   causal         and is not after the row's own key, own_offset + i; sink keys too
//   sink keys      are the first num_sink_keys from key_start on; neither window nor documents
//                  hide them
//   window w       near keys have |j - own| < w
//   cu_seqlens     near keys belong to the query's document: own_offset + [cu[m], cu[m + 1]).
//                  Keys outside the queries' own keys belong to no document
// A row whose own key is invisible (padding) excludes nothing: c = 0, z = y.
#pragma once

#include <cstdint>

#include "xsa/kernels/core/host_device.h"

namespace xsa::kernels {

/// [begin, end); empty where end <= begin.
struct KeyRange {
  std::int64_t begin = 0, end = 0;
};

XSA_HOST_DEVICE bool contains(KeyRange range, std::int64_t key) {
  return range.begin <= key && key < range.end;
}

XSA_HOST_DEVICE KeyRange intersect(KeyRange a, KeyRange b) {
  return {a.begin < b.begin ? b.begin : a.begin, a.end < b.end ? a.end : b.end};
}

struct VisibleKeys {
  KeyRange sinks, near;
};

XSA_HOST_DEVICE bool contains(const VisibleKeys& keys, std::int64_t key) {
  return contains(keys.sinks, key) || contains(keys.near, key);
}

/// The keys, counted from own_offset, of query i's document. [0, T] is cut at cu_seqlens.
XSA_HOST_DEVICE KeyRange document_of(const std::int32_t* cu_seqlens, std::int64_t documents,
                                     std::int64_t query) {
  std::int64_t low = 0, high = documents;  // cu[low] <= query < cu[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (cu_seqlens[middle] <= query ? low : high) = middle;
  }
  return {cu_seqlens[low], cu_seqlens[low + 1]};
}

/// The keys that query i of sequence b sees. Params is AttentionParams, or a device's copy of it.
template <class Params>
XSA_HOST_DEVICE VisibleKeys visible_keys(const Params& params, std::int64_t b, std::int64_t i) {
  const std::int64_t own = params.own_offset + i;
  KeyRange all{0, params.keys};
  if (params.key_start) all.begin = params.key_start[b];
  if (params.key_end) all.end = params.key_end[b];
  all = intersect(all, {0, params.keys});
  const KeyRange sinks{all.begin, all.begin + params.num_sink_keys};
  if (params.is_causal) all = intersect(all, {0, own + 1});

  KeyRange near = all;
  if (params.window) near = intersect(near, {own - params.window + 1, own + params.window});
  if (params.cu_seqlens) {
    const KeyRange document = document_of(params.cu_seqlens, params.documents, i);
    near = intersect(near, {params.own_offset + document.begin, params.own_offset + document.end});
  }
  return {intersect(sinks, all), near};
}

}  // namespace xsa::kernels
