#include "stretto/nn/matmul.h"

#include "stretto/comm/group.h"
#include "stretto/kernels/column_sums.h"
#include "stretto/kernels/loop_types.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/parameter_gradient.h"

namespace stretto::nn {
using kernels::MatmulRole;
using kernels::multiply;

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;  // every processor with AMX has it, too
#else
  return false;
#endif
}

namespace {

// Memory for a product, of the dtype of `options`.
Tensor empty_product(int64_t rows, int64_t columns, const at::TensorOptions& options, const Group* sum_over) {
  if (sum_over == nullptr) return at::empty({rows, columns}, options);
  return sum_over->scratch({rows, columns}, c10::typeMetaToScalarType(options.dtype()));
}

}  // namespace

Tensor operand(const Tensor& x) {
  const auto dtype = x.scalar_type();
  const bool wider = dtype == at::kHalf || (dtype == at::kBFloat16 && !cpu_has_bf16());
  return wider && x.device().is_cpu() ? x.to(at::kFloat) : x;
}

Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias, const Group* sum_over) {
  const Tensor wide_weight = operand(weight);
  if (!x.is_cpu()) return at::linear(x, wide_weight, bias);  // adds the bias in the matmul kernel
  const Tensor out = empty_product(x.size(0), weight.size(0), x.options(), sum_over);
  if (bias.defined()) {
    kernels::multiply_and_add(out, x, wide_weight.t(), bias);
  } else {
    multiply(MatmulRole::forward, out, x, wide_weight.t());
  }
  return out.to(weight.scalar_type());
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight, const Group* sum_over) {
  const Tensor out = empty_product(grad.size(0), weight.size(1), grad.options(), sum_over);
  multiply(MatmulRole::input_gradient, out, grad, operand(weight));
  return out;
}

void add_input_gradient(const Tensor& sum, const Tensor& grad, const Tensor& weight) {
  multiply(MatmulRole::input_gradient, sum, grad, operand(weight), /*accumulate=*/true);
}

Tensor weight_gradient(const Tensor& weight, const Tensor& grad, const Tensor& x, bool transposed) {
  if (transposed) return weight_gradient(weight, x, grad);
  if (has_gradient_buffer(weight)) {
    multiply(MatmulRole::weight_gradient, weight.grad(), grad.t(), x, /*accumulate=*/true);
    return {};
  }
  const Tensor out = at::empty(weight.sizes(), grad.options());
  multiply(MatmulRole::weight_gradient, out, grad.t(), x);
  return out.to(weight.scalar_type());
}

Tensor bias_gradient(const Tensor& bias, const Tensor& grad) {
  const ParameterGradient sums(bias, kernels::computed_type(bias.scalar_type()), /*needed=*/true);
  if (grad.is_cpu() && grad.scalar_type() != at::kHalf) {
    kernels::add_column_sums(grad, sums.sum());
  } else {
    Tensor(sums.sum()).add_(at::sum(grad, {0}, /*keepdim=*/false, sums.sum().scalar_type()));
  }
  return sums.result();
}

}  // namespace stretto::nn
