#include "stretto/nn/functional.h"

#include <array>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/kernels/dropout.h"

namespace stretto::nn {

Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context) {
  const kernels::Dropout how = context.dropout(p, site);
  if (how.p == 0) return x;
  return x * kernels::dropout_mask({layout.samples, layout.positions, 1}, x.size(1), how.p, how.key,
                                   x.scalar_type());
}

Activation activation(const std::string& name) {
  struct Entry {
    const char* name;
    Activation activation;
  };
  static constexpr std::array<Entry, 8> known = {{{"gelu", Activation::gelu},
                                                  {"gelu_new", Activation::gelu_tanh},
                                                  {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                  {"relu", Activation::relu},
                                                  {"silu", Activation::silu},
                                                  {"swish", Activation::silu},
                                                  {"tanh", Activation::tanh},
                                                  {"sigmoid", Activation::sigmoid}}};
  std::vector<std::string> names;
  for (const Entry& entry : known) {
    if (entry.name == name) return entry.activation;
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
