#include "stretto/nn/functional.h"

#include <array>

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/kernels/activation.h"
#include "stretto/kernels/cross_entropy.h"
#include "stretto/kernels/dropout.h"

namespace stretto::nn {

Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context) {
  const kernels::Dropout how = context.dropout(p, site);
  if (how.p == 0) return x;
  return x * kernels::dropout_mask({layout.samples, layout.places, 1}, x.size(1), how.p, how.key,
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

Tensor activate(const Tensor& x, Activation activation) {
  return kernels::activate_reference(activation, x, {});
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t ignored_label = -100;

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels) {
    const auto result = kernels::cross_entropy(logits, labels, ignored_label);
    context->save_for_backward({logits, labels, result.normaliser});
    return result.sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    return {kernels::cross_entropy_backward(outputs[0].item<double>(), saved[0], saved[1], ignored_label,
                                            saved[2]),
            Tensor()};
  }
};

void check_labels(const Tensor& wrong, const Tensor& labels, int64_t classes) {
  if (!wrong.any().item<bool>()) return;
  throw DataError("cross_entropy: label {} is not one of {} classes (0 to {}; -100 ignores a row)",
                  labels.masked_select(wrong)[0].item<int64_t>(), classes, classes - 1);
}

}  // namespace

Loss cross_entropy(const Tensor& logits, const Tensor& labels, const Context& context) {
  if (logits.dim() != 2 || labels.dim() != 1 || logits.size(0) != labels.size(0) ||
      labels.scalar_type() != at::kLong) {
    throw ShapeError("cross_entropy: logits {} and labels {} do not match; expected [N, C] and [N] int64",
                     describe(logits), describe(labels));
  }
  const Tensor counts = labels.ne(ignored_label);
  if (labels.device().is_cpu())
    check_labels(labels.lt(0).logical_or(labels.ge(logits.size(1))).logical_and(counts), labels,
                 logits.size(1));
  const Tensor sum = context.fast(logits)
                         ? CrossEntropyFunction::apply(logits.contiguous(), labels.contiguous())
                         : kernels::cross_entropy_reference(logits, labels, ignored_label);
  return {sum, static_cast<double>(counts.sum().item<int64_t>())};
}

}  // namespace stretto::nn
