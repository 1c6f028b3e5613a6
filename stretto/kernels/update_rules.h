#pragma once

#include <span>

#include "stretto/kernels/rule_types.h"
#include "stretto/tensor/tensor.h"

// Apply update rules of optimizers in one pass over memory on CPU.  p: parameter, g: gradient.
namespace stretto::kernels {

// Updates `master` by `grad`, which is zeroed, and `state`, whose tensors are in the order of the letters in
// rule_types.h, without b if there is one tensor less. All are contiguous 1-D tensors of equal length.
// Returns false and changes nothing if there are no loops for them, such as on GPUs.
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
