#include "stretto/nn/activation_checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "stretto/base/error.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RecomputedRegion : torch::CustomClassHolder {
  std::function<Tensor(const Carry&)> forward;
  std::vector<Tensor> parameters;
  std::vector<at::Generator> generators;
  std::vector<Tensor> random_states;  // of the generators, before the first forward
};

// The generators that torch's layers draw from: the CPU's, and that of the carry's GPU.
std::vector<at::Generator> generators_of(const Carry& carry) {
  std::vector<at::Generator> generators = {at::detail::getDefaultCPUGenerator()};
  for (const Tensor& x : carry) {
    if (!x.is_cuda()) continue;
    generators.push_back(at::globalContext().defaultGenerator(x.device()));
    break;
  }
  return generators;
}

std::vector<Tensor> states_of(const std::vector<at::Generator>& generators) {
  std::vector<Tensor> states;
  for (const at::Generator& generator : generators) states.push_back(generator.get_state());
  return states;
}

thread_local bool inside_region = false;

struct InsideRegion {
  InsideRegion() {
    if (inside_region)
      throw Error(
          "activation_checkpoint: called inside of another activation_checkpoint; nested activation checkpointing is not supported: keep one of the two");
    inside_region = true;
  }
  InsideRegion(const InsideRegion&) = delete;
  InsideRegion& operator=(const InsideRegion&) = delete;
  ~InsideRegion() { inside_region = false; }
};

// Sets the generators to the states of the first forward for a scope.
class RandomState {
 public:
  explicit RandomState(const RecomputedRegion& region)
      : generators_(region.generators), before_(states_of(generators_)) {
    set(region.random_states);
  }
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;
  ~RandomState() { set(before_); }

 private:
  void set(const std::vector<Tensor>& states) {
    for (size_t i = 0; i < generators_.size(); ++i) generators_[i].set_state(states[i]);
  }

  std::vector<at::Generator> generators_;
  std::vector<Tensor> before_;
};

struct ActivationCheckpointFunction : torch::autograd::Function<ActivationCheckpointFunction> {
  static Tensor forward(AutogradContext* context, at::TensorList carry,
                        const Tensor& /*makes the output need a gradient*/,
                        c10::intrusive_ptr<RecomputedRegion> region) {
    context->save_for_backward(carry.vec());
    const InsideRegion inside;
    region->generators = generators_of(carry.vec());
    region->random_states = states_of(region->generators);
    Tensor y = region->forward(carry.vec());
    context->saved_data["region"] = c10::IValue::make_capsule(std::move(region));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto capsule = context->saved_data["region"].toCapsule();
    const auto& region = static_cast<const RecomputedRegion&>(*capsule);
    Carry carry;
    for (const Tensor& saved : context->get_saved_variables())
      carry.push_back(saved.detach().requires_grad_(saved.requires_grad()));
    Tensor y;
    {
      const InsideRegion inside;
      const at::AutoGradMode with_grad(true);
      const RandomState random(region);
      y = region.forward(carry);
    }
    torch::autograd::backward({y}, {outputs[0]});
    variable_list gradients;
    for (const Tensor& x : carry) gradients.push_back(x.grad());
    gradients.resize(carry.size() + 2);
    return gradients;
  }
};

}  // namespace

Tensor activation_checkpoint(const std::function<Tensor(const Carry&)>& forward, const Carry& carry,
                             const std::vector<Tensor>& parameters) {
  if (!at::GradMode::is_enabled()) return forward(carry);
  auto region = c10::make_intrusive<RecomputedRegion>();
  region->forward = forward;
  region->parameters = parameters;
  return ActivationCheckpointFunction::apply(at::TensorList(carry), at::empty({0}).requires_grad_(), region);
}

const std::vector<Tensor>* recomputed_parameters(torch::autograd::Node& node) {
  auto* found = dynamic_cast<torch::autograd::CppNode<ActivationCheckpointFunction>*>(&node);
  if (found == nullptr) return nullptr;
  return &static_cast<const RecomputedRegion&>(*found->ctx_.saved_data["region"].toCapsule()).parameters;
}

}  // namespace stretto::nn
