#include "xsa/op/checks.h"

#include <cmath>
#include <string>

#include "xsa/op/expect.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using c10::SymInt;

const Expect expect{"xsa::attention"};

void check_types(const Inputs& in) {
  const auto check_one = [&](const char* name, const Tensor& tensor, const char* shape) {
    check_dense(expect, name, tensor);
    expect(tensor.dim() == 4, name, ": expected 4 dimensions ", shape, ", got ", describe(tensor),
           "; unsqueeze missing batch or head dimensions");
    expect(tensor.scalar_type() == in.q.scalar_type(), name, ": expected the type of q, ",
           in.q.scalar_type(), ", got ", describe(tensor), "; cast q, k and v to one type");
    expect(tensor.device() == in.q.device(), name, ": expected the device of q, ", in.q.device(),
           ", got ", describe(tensor), "; move q, k and v to one device");
  };
  check_one("q", in.q, "[B, H, T, D]");
  check_one("k", in.k, "[B, K, S, D]");
  check_one("v", in.v, "[B, K, S, Dv]");
  const at::ScalarType type = in.q.scalar_type();
  expect(type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
         "q: expected float32, float64, bfloat16 or float16, got ", describe(in.q));
}

void check_shapes(const Inputs& in, const AttentionOptions& options) {
  const auto same = [&](const char* name, const Tensor& tensor, int dim, const char* letter,
                        const char* other_name, const Tensor& other) {
    expect(tensor.sym_size(dim).sym_eq(other.sym_size(dim)), name, ": expected ", letter, " = ",
           other.sym_size(dim), " in dimension ", dim, " as in ", other_name, ", got ",
           describe(tensor));
  };
  same("k", in.k, 0, "B", "q", in.q);
  same("k", in.k, 3, "D", "q", in.q);
  same("v", in.v, 0, "B", "q", in.q);
  same("v", in.v, 1, "K", "k", in.k);
  same("v", in.v, 2, "S", "k", in.k);
  expect(in.q.sym_size(3).sym_ge(1), "q: expected a head dimension D of at least 1, got ",
         describe(in.q));
  expect(in.v.sym_size(3).sym_ge(1), "v: expected a head dimension Dv of at least 1, got ",
         describe(in.v));

  const SymInt heads = in.q.sym_size(1), key_heads = in.k.sym_size(1);
  expect(key_heads.sym_ge(1), "k: expected at least 1 head, got ", describe(in.k));
  expect((heads % key_heads).sym_eq(0), "q: expected H to be a multiple of K = ", key_heads,
         " (each key/value head serves H / K query heads), got H = ", heads);

  const SymInt queries = in.q.sym_size(2), keys = in.k.sym_size(2);
  if (options.own_offset) {
    const SymInt& own = *options.own_offset;
    expect(own.sym_ge(0), "own_offset: expected at least 0, got ", own,
           "; it is the index of the first query's own key");
    expect((keys - queries).sym_ge(own), "own_offset: expected own_offset + T <= S = ", keys,
           " (query i owns key own_offset + i), got ", own, " + ", queries,
           "; append the queries' own keys and values before the call");
  } else {
    expect(queries.sym_le(keys), "k: expected S >= T = ", queries, ", got S = ", keys,
           "; every query needs its own key and value: append them, or pass own_offset");
  }
}

void check_numbers(const AttentionOptions& o) {
  expect(!o.scale || std::isfinite(static_cast<float>(*o.scale)),
         "scale: expected a finite float32 number, got ", o.scale.value_or(0),
         "; leave it out for 1/sqrt(D)");
  check_strength_and_eps(expect, o.strength, o.eps);
  expect(o.num_sink_keys.sym_ge(0), "num_sink_keys: expected at least 0, got ", o.num_sink_keys,
         "; 0 is no sink key");
  if (o.window)
    expect(o.window->sym_ge(1), "window: expected at least 1 (the own key), got ", *o.window,
           "; leave it out for no window");
}

void check_float_option(const char* name, const Tensor& tensor, const Tensor& q) {
  check_dense(expect, name, tensor);
  expect(at::isFloatingType(tensor.scalar_type()), name, ": expected a floating-point tensor, got ",
         describe(tensor), "; cast it");
  expect(tensor.device() == q.device(), name, ": expected the device of q, ", q.device(), ", got ",
         describe(tensor));
}

void check_tensor_options(const Inputs& in, const AttentionOptions& o) {
  const SymInt batch = in.q.sym_size(0), heads = in.q.sym_size(1);
  if (has(o.learned_strength)) {
    check_float_option("learned_strength", *o.learned_strength, in.q);
    check_learned_strength_shape(expect, *o.learned_strength, in.q);
  }
  if (has(o.sink_logits)) {
    check_float_option("sink_logits", *o.sink_logits, in.q);
    expect(o.sink_logits->dim() == 1, "sink_logits: expected [H] = [", heads, "], got ",
           describe(*o.sink_logits));
    expect(o.sink_logits->sym_size(0).sym_eq(heads), "sink_logits: expected [H] = [", heads,
           "], got ", describe(*o.sink_logits));
  }
  if (has(o.cu_seqlens)) {
    const Tensor& cu = *o.cu_seqlens;
    check_dense(expect, "cu_seqlens", cu);
    expect(cu.dim() == 1 && cu.scalar_type() == at::kInt,
           "cu_seqlens: expected int32 [documents + 1], got ", describe(cu));
    expect(cu.sym_size(0).sym_ge(2), "cu_seqlens: expected at least 2 entries, 0 and T, got ",
           describe(cu));
    expect(cu.device() == in.q.device(), "cu_seqlens: expected the device of q, ", in.q.device(),
           ", got ", describe(cu));
    expect(batch.sym_eq(1),
           "cu_seqlens: expected B = 1 (documents lie one after another), got B = ", batch,
           "; reshape to one packed sequence");
  }
  const auto check_range_option = [&](const char* name, const OptionalTensor& option) {
    if (!has(option)) return;
    check_dense(expect, name, *option);
    const at::ScalarType type = option->scalar_type();
    expect(option->dim() == 1 && (type == at::kInt || type == at::kLong), name,
           ": expected int32 or int64 [B] = [", batch, "], got ", describe(*option));
    expect(option->sym_size(0).sym_eq(batch), name, ": expected [B] = [", batch, "], got ",
           describe(*option));
    expect(option->device() == in.q.device(), name, ": expected the device of q, ", in.q.device(),
           ", got ", describe(*option));
  };
  check_range_option("key_start", o.key_start);
  check_range_option("key_end", o.key_end);
}

bool readable(const OptionalTensor& tensor) { return has(tensor) && tensor->is_cpu(); }

void check_seqlens(const Tensor& cu_seqlens, std::int64_t queries) {
  const Tensor cu = cu_seqlens.contiguous();
  const std::int32_t* ends = cu.const_data_ptr<std::int32_t>();
  const std::int64_t documents = cu.numel() - 1;
  expect(ends[0] == 0, "cu_seqlens: expected 0 first, got ", ends[0]);
  expect(ends[documents] == queries, "cu_seqlens: expected T = ", queries, " last, got ",
         ends[documents]);
  for (std::int64_t i = 0; i < documents; ++i)
    expect(ends[i] <= ends[i + 1], "cu_seqlens: expected entries in rising order, got ", ends[i],
           " before ", ends[i + 1], " at ", i);
}

}  // namespace

void check_call(const Inputs& inputs, const AttentionOptions& options) {
  check_types(inputs);
  check_shapes(inputs, options);
  check_numbers(options);
  check_tensor_options(inputs, options);
}

void check_call(const BackwardInputs& in, const AttentionOptions& options) {
  check_call(in.forward(), options);
  const auto check_one = [&](const char* name, const Tensor& tensor, bool per_row) {
    check_dense(expect, name, tensor);
    const bool right_type =
        tensor.scalar_type() == (per_row ? accumulate_type(in.q) : in.q.scalar_type());
    expect(tensor.dim() == (per_row ? 3 : 4) && right_type && tensor.device() == in.q.device(),
           name, ": expected ", per_row ? "[B, H, T] as lse" : "[B, H, T, Dv] as z",
           " of the forward, got ", describe(tensor));
    for (int dim = 0; dim < 3; ++dim)
      expect(tensor.sym_size(dim).sym_eq(in.q.sym_size(dim)), name, ": expected ",
             in.q.sym_size(dim), " in dimension ", dim, " as in q, got ", describe(tensor));
    if (!per_row)
      expect(tensor.sym_size(3).sym_eq(in.v.sym_size(3)), name,
             ": expected Dv = ", in.v.sym_size(3), " as in v, got ", describe(tensor));
  };
  check_one("dz", in.dz, false);
  check_one("z", in.z, false);
  check_one("lse", in.lse, true);
  check_one("c", in.c, true);
  if (has(in.dlse)) check_one("dlse", *in.dlse, true);
}

void check_index_values(const Inputs& in, const AttentionOptions& o) {
  const std::int64_t batch = in.q.size(0), keys = in.k.size(2);
  if (readable(o.cu_seqlens)) check_seqlens(*o.cu_seqlens, in.q.size(2));
  const auto value = [](const Tensor& tensor, std::int64_t b) {
    return tensor[b].item<std::int64_t>();
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t start = readable(o.key_start) ? value(*o.key_start, b) : 0;
    const std::int64_t end = readable(o.key_end) ? value(*o.key_end, b) : keys;
    expect(start >= 0, "key_start: expected at least 0, got ", start, " at ", b);
    expect(end <= keys, "key_end: expected at most S = ", keys, ", got ", end, " at ", b);
    expect(start <= end, "key_start: expected key_start <= key_end, got ", start, " and ", end,
           " at ", b);
  }
}

}  // namespace xsa::op
