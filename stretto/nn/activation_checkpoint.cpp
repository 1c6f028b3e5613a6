#include "stretto/nn/activation_checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
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
  Tensor random_state;
};

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

// Sets the CPU generator to `state` for a scope.
class RandomState {
 public:
  explicit RandomState(const Tensor& state) : generator_(at::detail::getDefaultCPUGenerator()) {
    before_ = generator_.get_state();
    generator_.set_state(state);
  }
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;
  ~RandomState() { generator_.set_state(before_); }

 private:
  at::Generator generator_;
  Tensor before_;
};

struct ActivationCheckpointFunction : torch::autograd::Function<ActivationCheckpointFunction> {
  static Tensor forward(AutogradContext* context, at::TensorList carry,
                        const Tensor& /*makes the output need a gradient*/,
                        c10::intrusive_ptr<RecomputedRegion> region) {
    context->save_for_backward(carry.vec());
    const InsideRegion inside;
    region->random_state = at::detail::getDefaultCPUGenerator().get_state();
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
      const RandomState random(region.random_state);
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
