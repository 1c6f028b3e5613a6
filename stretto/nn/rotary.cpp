#include "stretto/nn/rotary.h"

#include "stretto/kernels/rotary.h"
#include "stretto/nn/apply.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RotateFunction : torch::autograd::Function<RotateFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosines,
                        const Tensor& sines) {
    context->save_for_backward({cosines, sines});
    return kernels::rotate(x, cosines, sines);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    return {kernels::rotate(outputs[0].contiguous(), saved[0], saved[1], /*back=*/true), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rotate(const Tensor& x, const Rotation& rotation, const Context& context) {
  if (!rotation.cosines.defined()) return x;
  if (context.fast(x)) return apply<RotateFunction>(x.contiguous(), rotation.cosines, rotation.sines);
  return kernels::rotate_reference(x, rotation.cosines, rotation.sines);
}

}  // namespace stretto::nn
