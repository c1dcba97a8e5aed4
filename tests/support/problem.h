// Attention problems for tests: typed, strided arrays that own their memory, filled by seed, and
// the AttentionParams that point at them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xsa/base/rng.h"
#include "xsa/kernels/attention.h"

namespace xsa::testing {

/// How a [B, H, T, D] array lies in memory. Gaps hold NaN.
enum class Layout {
  kDense,       // as indexed
  kTokenMajor,  // [B, T, H, D], as a model's projections leave it
  kPadded,      // rows 3 elements longer, heads one row longer
  kInnermost,   // the last dimension has the largest stride
  kExpanded     // one batch row for all (stride 0); inputs only
};

/// What the values are like.
enum class Values {
  kOrdinary,  // standard normal
  kPeaky,     // logits of +-30: nearly one-hot rows
  kHostile    // loud late keys (logits of hundreds), tiny and zero values
};

/// How the queries, and their own keys with them, are cut into documents (batch = 1).
enum class Packing {
  kNone,
  kFew,  // one token, none, a third of the others, the rest
  kMany  // up to seven tokens each, some of them empty
};

/// Which keys the sequences have.
enum class Ranges {
  kAll,
  kLeft,   // padding in front; key_start alone
  kRight,  // padding behind; key_end alone
  kBoth,
  kEmpty  // as kBoth, and where there are several sequences, the first has no key at all
};

/// Who shares a learned strength; some of them are 0.
enum class Learned { kNone, kScalar, kHead, kToken };

/// A strided 4-d array of any Type.
class Array {
 public:
  Array() = default;
  Array(kernels::Type type, std::array<std::int64_t, 4> sizes, Layout layout = Layout::kDense);

  double get(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const;
  void set(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, double value);
  /// All elements in index order, whatever the layout.
  std::vector<double> values() const;
  /// Calls visit(a, b, c, d) for every element in index order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::int64_t a = 0; a < sizes[0]; ++a)
      for (std::int64_t b = 0; b < sizes[1]; ++b)
        for (std::int64_t c = 0; c < sizes[2]; ++c)
          for (std::int64_t d = 0; d < sizes[3]; ++d) visit(a, b, c, d);
  }
  /// The largest and the smallest Euclidean norm of a row (over the last dimension) that is not 0.
  double largest_norm() const;
  double smallest_norm() const;
  /// Whether all memory that is no element is still NaN.
  bool gaps_untouched() const;

  kernels::View view() const;
  kernels::MutableView mutable_view();

  kernels::Type type = kernels::Type::kFloat32;
  std::array<std::int64_t, 4> sizes{}, stride{};

 private:
  std::int64_t at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const;
  std::int64_t elements_ = 0;
  std::vector<std::uint64_t> memory_;
};

/// What a test asks for; by name, all with defaults.
struct ProblemSpec {
  std::int64_t batch = 1, query_heads = 1, key_heads = 1, queries = 1, keys = 1, head_dim = 4,
               value_dim = 4;
  kernels::Type type = kernels::Type::kFloat32;
  Layout layout = Layout::kDense;
  Values values = Values::kOrdinary;
  bool is_causal = false;
  double strength = 1;
  std::int64_t own_offset = -1;  // -1: keys - queries
  std::int64_t window = 0, num_sink_keys = 0;
  bool with_sink_logits = false;
  Packing packing = Packing::kNone;
  Ranges ranges = Ranges::kAll;
  Learned learned = Learned::kNone;
  bool with_dlse = true;
  std::uint64_t seed = 1;
};

std::string describe(const ProblemSpec& spec);

/// Inputs, outputs and gradients of one call.
struct Problem {
  explicit Problem(const ProblemSpec& spec);

  /// The same values (rounded, where `type` is narrower) in arrays of another type.
  Problem in(kernels::Type type) const;

  /// Points into this problem: valid while it lives and its vectors keep their size.
  kernels::AttentionParams params();

  kernels::AttentionParams options;  // sizes and options; its pointers are not used
  Array q, k, v, dz;
  std::vector<float> dlse;
  Array z, dq, dk, dv;
  std::vector<float> lse, c;
  // Empty: not given.
  std::vector<float> learned_strength, sink_logits, dlearned_strength, dsink_logits;
  std::vector<std::int32_t> cu_seqlens;
  std::vector<std::int64_t> key_start, key_end;

 private:
  void fill_values(Rng& rng);
  void cut_into_documents(Rng& rng);
  void limit_keys();
  void draw_learned(Rng& rng);

  ProblemSpec spec_;
};

}  // namespace xsa::testing
