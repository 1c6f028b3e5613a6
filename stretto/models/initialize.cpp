#include "stretto/models/initialize.h"

#include <set>

#include <ATen/CPUGeneratorImpl.h>

#include "stretto/base/hash.h"
#include "stretto/nn/layers.h"

namespace stretto {

void initialize_parameters(torch::nn::Module& model, uint64_t seed, const std::vector<std::string>& names,
                           double std, const std::string& table, int64_t padding_row) {
  at::NoGradGuard no_grad;
  std::set<std::string> norms;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (std::dynamic_pointer_cast<nn::LayerNorm>(item.value()) != nullptr)
      norms.insert(item.key() + ".weight");
  }
  const auto parameters = model.named_parameters();
  for (const std::string& name : names) {
    const Tensor& parameter = parameters[name];
    if (name.ends_with(".bias")) {
      parameter.zero_();
    } else if (norms.contains(name)) {
      parameter.fill_(1);
    } else {
      at::Generator random = at::detail::createCPUGenerator(hash64(name, seed));
      parameter.normal_(0, std, random);
    }
    if (name == table && padding_row < parameter.size(0)) parameter[padding_row].zero_();
  }
}

}  // namespace stretto
