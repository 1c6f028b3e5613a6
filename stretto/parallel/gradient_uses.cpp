#include "stretto/parallel/gradient_uses.h"

#include <unordered_set>

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "stretto/nn/activation_checkpoint.h"

namespace stretto::parallel {
namespace {

using Indices = std::unordered_map<const c10::TensorImpl*, size_t>;

void check_edge(const torch::autograd::Node& user, torch::autograd::Node* used, const Indices& index_of,
                const CheckUse& check) {
  const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(used);
  if (leaf == nullptr) return;
  const auto found = index_of.find(leaf->variable.unsafeGetTensorImpl());
  if (found != index_of.end()) check(found->second, user);
}

}  // namespace

std::vector<int> count_gradient_uses(const Tensor& root,
                                     const std::unordered_map<const c10::TensorImpl*, size_t>& index_of,
                                     size_t count, std::vector<Tensor>* others, const CheckUse& check) {
  using torch::autograd::AccumulateGrad;
  using torch::autograd::Node;
  std::vector<int> uses(count, 0);
  const auto add_use = [&](const Tensor& parameter) {
    const auto found = index_of.find(parameter.unsafeGetTensorImpl());
    if (found != index_of.end()) {
      ++uses[found->second];
    } else if (others != nullptr) {
      others->push_back(parameter);
    }
  };
  std::unordered_set<Node*> seen;
  std::vector<Node*> waiting = {root.grad_fn().get()};
  while (!waiting.empty()) {
    Node* node = waiting.back();
    waiting.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<AccumulateGrad*>(node)) {
      add_use(leaf->variable);
    } else if (const auto* recomputed = nn::recomputed_parameters(*node)) {
      for (const Tensor& parameter : *recomputed) {
        add_use(parameter);
        const auto found = index_of.find(parameter.unsafeGetTensorImpl());
        if (check && found != index_of.end())
          check(found->second, *node);  // its own graph does not exist yet
      }
    }
    for (const auto& edge : node->next_edges()) {
      waiting.push_back(edge.function.get());
      if (check) check_edge(*node, edge.function.get(), index_of, check);
    }
  }
  return uses;
}

}  // namespace stretto::parallel
