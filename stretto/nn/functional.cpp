#include "stretto/nn/functional.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/kernels/dropout.h"

namespace stretto::nn {
namespace {

uint64_t site_key(const Context& context, uint64_t site) {
  return hash64(std::array<uint64_t, 2>{context.key, site});
}

bool drops(double p, const Context& context) { return context.training && p > 0; }

// [T, heads, D] -> [B, heads, L, D], zeros where a sequence is shorter than the longest.
Tensor pad(const Tensor& x, const PackedLayout& layout) {
  const Tensor padded = at::zeros({layout.batch * layout.max_length, x.size(1), x.size(2)}, x.options())
                            .index_copy(0, layout.slots, x);
  return padded.view({layout.batch, layout.max_length, x.size(1), x.size(2)}).transpose(1, 2);
}

// [B, 1, 1, L]: 0 for a token, -infinity for padding.
Tensor padding_mask(const PackedLayout& layout, const at::TensorOptions& options) {
  const Tensor mask =
      at::full({layout.batch * layout.max_length}, -std::numeric_limits<double>::infinity(), options);
  return mask.index_fill(0, layout.slots, 0).view({layout.batch, 1, 1, layout.max_length});
}

// [B, heads, L, L] keyed by sample, query position, head and key position.
Tensor attention_dropout_mask(const PackedLayout& layout, int64_t heads, double p, uint64_t key,
                              at::ScalarType dtype) {
  const int64_t batch = layout.batch, length = layout.max_length;
  const Tensor samples = layout.sample_of_sequence().view({batch, 1}).expand({batch, length}).reshape({-1});
  const Tensor positions = at::arange(length, samples.options()).repeat({batch});
  const Tensor mask = kernels::dropout_mask({samples, positions, heads}, length, p, key, dtype);
  return mask.view({batch, length, heads, length}).transpose(1, 2);
}

}  // namespace

Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context) {
  if (!drops(p, context)) return x;
  return x * kernels::dropout_mask({layout.samples, layout.positions, 1}, x.size(1), p,
                                   site_key(context, site), x.scalar_type());
}

Tensor sequence_dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout,
                        const Context& context) {
  if (!drops(p, context)) return x;
  const Tensor samples = layout.sample_of_sequence();
  return x * kernels::dropout_mask({samples, at::zeros_like(samples), 1}, x.size(1), p,
                                   site_key(context, site), x.scalar_type());
}

Tensor packed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PackedLayout& layout,
                        double p, uint64_t site, const Context& context) {
  const auto dtype = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  const Tensor queries = pad(q.to(dtype) * scale, layout);
  Tensor scores = at::matmul(queries, pad(k.to(dtype), layout).transpose(2, 3));
  Tensor weights = at::softmax(scores + padding_mask(layout, scores.options()), -1);
  if (drops(p, context)) {
    weights = weights * attention_dropout_mask(layout, q.size(1), p, site_key(context, site), dtype);
  }
  const Tensor mixed = at::matmul(weights, pad(v.to(dtype), layout)).transpose(1, 2);
  const Tensor rows = mixed.reshape({layout.batch * layout.max_length, q.size(1) * q.size(2)});
  return rows.index_select(0, layout.slots).to(q.scalar_type());
}

Activation activation(const std::string& name) {
  struct Entry {
    const char* name;
    Activation function;
  };
  static const std::array<Entry, 8> known = {{
      {"gelu", [](const Tensor& x) { return at::gelu(x); }},
      {"gelu_new", [](const Tensor& x) { return at::gelu(x, "tanh"); }},
      {"gelu_pytorch_tanh", [](const Tensor& x) { return at::gelu(x, "tanh"); }},
      {"relu", [](const Tensor& x) { return at::relu(x); }},
      {"silu", [](const Tensor& x) { return at::silu(x); }},
      {"swish", [](const Tensor& x) { return at::silu(x); }},
      {"tanh", [](const Tensor& x) { return at::tanh(x); }},
      {"sigmoid", [](const Tensor& x) { return at::sigmoid(x); }},
  }};
  std::vector<std::string> names;
  for (const Entry& entry : known) {
    if (entry.name == name) return entry.function;
    names.push_back(entry.name);
  }
  throw ConfigError("hidden_act: \"{}\" is not an activation{} (known: {})", name, did_you_mean(name, names),
                    fmt::join(names, ", "));
}

Loss cross_entropy(const Tensor& logits, const Tensor& labels) {
  if (logits.dim() != 2 || labels.dim() != 1 || logits.size(0) != labels.size(0)) {
    throw ShapeError("cross_entropy: logits {} and labels {} do not fit; [N, C] and [N] are needed",
                     describe(logits), describe(labels));
  }
  const auto dtype = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor sum = at::cross_entropy_loss(logits.to(dtype), labels, {}, at::Reduction::Sum, -100);
  return {sum, static_cast<double>(labels.ne(-100).sum().item<int64_t>())};
}

}  // namespace stretto::nn
