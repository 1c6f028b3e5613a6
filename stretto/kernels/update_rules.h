#pragma once

#include <span>

#include "stretto/kernels/rule_types.h"
#include "stretto/tensor/tensor.h"

// Update rules of optimizers, in one pass over memory on CPU.  p: parameter, g: gradient.
namespace stretto::kernels {

// Steps `master` by `grad`, which is left as zeros, and `state`: in the order of the letters above; without b if there is one tensor
// less. 1-D tensors of equal length, contiguous. False, and nothing is changed, where there are no loops: not on CPU.
bool update(const AdamRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);
bool update(const AdamaxRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);
bool update(const RmspropRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);
bool update(const AdagradRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);
bool update(const AdadeltaRule& rule, const Tensor& master, const Tensor& grad,
            std::span<const Tensor> state);
bool update(const AsgdRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);
bool update(const RpropRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);
bool update(const SgdRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state);

}  // namespace stretto::kernels
