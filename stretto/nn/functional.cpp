#include "stretto/nn/functional.h"

#include <array>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/kernels/activation.h"
#include "stretto/kernels/dropout.h"

namespace stretto::nn {

Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context,
               int64_t first_column) {
  const kernels::Dropout how = context.dropout(p, site);
  if (how.p == 0) return x;
  const int64_t skipped = first_column % 4;  // masks begin at a multiple of 4
  const kernels::DropoutRows rows = {
      .samples = layout.samples, .places = layout.places, .first_column = first_column - skipped};
  const Tensor mask = kernels::dropout_mask(rows, skipped + x.size(1), how.p, how.key, x.scalar_type());
  return x * mask.slice(1, skipped);
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
  throw ConfigError("\"{}\" is not an activation{} (known: {})", name, did_you_mean(name, names),
                    fmt::join(names, ", "));
}

Tensor activate(const Tensor& x, Activation activation) {
  return kernels::activate_reference(activation, x, {});
}

}  // namespace stretto::nn
