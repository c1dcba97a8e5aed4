// Masks as segments: which rows of a tile of keys the vectors of a panel see.
#pragma once

#include "xsa/kernels/cpu/simd.h"

namespace xsa::kernels::cpu {
namespace {

/// Keys [begin[n], end[n]) that query n of a block sees in one pass; neither falls with n. Whole
/// vectors are filled: the last query's bounds are repeated.
struct Bounds {
  Index *begin, *end;
};

/// Key rows [begin, end) of a tile that vectors [first, first + count) of a panel see; where bit j
/// of `masked` is set, not all lanes of vector first + j see all of them.
struct Segment {
  Index begin, end, first, count;
  unsigned masked;
};

/// A tile cut so that hardly a vector is computed that sees nothing.
struct Segments {
  Segment at[4 * kPanelVectors];
  int count = 0;
  Index begin() const { return count == 0 ? 0 : at[0].begin; }
  Index end() const { return count == 0 ? 0 : at[count - 1].end; }
};

/// The tile of a panel, given its queries' bounds, and key rows [key, key + rows).
inline Segments segments_of(Bounds bounds, Index key, Index rows, Index vectors) {
  // Rows that a lane of vector j sees, outwards to whole register tiles, and that all lanes see.
  Index any_begin[kPanelVectors], any_end[kPanelVectors];
  Index all_begin[kPanelVectors], all_end[kPanelVectors];
  Index cuts[4 * kPanelVectors];
  int count = 0;
  const auto cut = [&](Index row) {
    row = max_of(0, min_of(rows, row));
    int n = count++;
    for (; n > 0 && cuts[n - 1] > row; --n) cuts[n] = cuts[n - 1];
    cuts[n] = row;
  };
  const auto down = [](Index row) { return row & -static_cast<Index>(kTileRows); };
  for (Index j = 0; j < vectors; ++j) {
    const Index low = j * kLanes, high = low + kLanes - 1;
    all_begin[j] = bounds.begin[high] - key, all_end[j] = bounds.end[low] - key;
    any_begin[j] = down(bounds.begin[low] - key);
    any_end[j] = down(bounds.end[high] - key + kTileRows - 1);
    cut(any_begin[j]), cut(any_end[j]);
    cut(down(all_begin[j] + kTileRows - 1)), cut(down(all_end[j]));
  }
  Segments segments;
  for (int n = 0; n + 1 < count; ++n) {
    if (cuts[n] == cuts[n + 1]) continue;
    Segment segment{cuts[n], cuts[n + 1], 0, 0, 0};
    for (Index j = 0; j < vectors; ++j) {
      if (any_begin[j] > segment.begin || any_end[j] <= segment.begin) continue;
      if (segment.count++ == 0) segment.first = j;
      if (all_begin[j] > segment.begin || all_end[j] < segment.end)
        segment.masked |= 1u << (j - segment.first);
    }
    if (segment.count == 0) continue;
    Segment* before = segments.count > 0 ? &segments.at[segments.count - 1] : nullptr;
    if (before && before->end == segment.begin && before->first == segment.first &&
        before->count == segment.count && before->masked == segment.masked)
      before->end = segment.end;
    else
      segments.at[segments.count++] = segment;
  }
  return segments;
}

/// The bounds of a panel's lanes from a tile's first key on.
struct LaneBounds {
  float begin[kPanelVectors * kLanes], end[kPanelVectors * kLanes];
};

inline LaneBounds lane_bounds(Bounds bounds, Index key, Index rows, Index width) {
  LaneBounds lanes;
  for (Index l = 0; l < width; ++l) {
    lanes.begin[l] = static_cast<float>(max_of(0, min_of(rows, bounds.begin[l] - key)));
    lanes.end[l] = static_cast<float>(max_of(0, min_of(rows, bounds.end[l] - key)));
  }
  return lanes;
}

/// Lanes of a vector, the one that starts at `lane`, that see row r.
HWY_INLINE hn::Mask<Floats> sees(const LaneBounds& lanes, Index lane, Index r) {
  const Vec row = hn::Set(kF, static_cast<float>(r));
  return hn::And(hn::Ge(row, hn::LoadU(kF, lanes.begin + lane)),
                 hn::Lt(row, hn::LoadU(kF, lanes.end + lane)));
}

}  // namespace
}  // namespace xsa::kernels::cpu
