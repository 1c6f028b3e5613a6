#include "stretto/nn/matmul.h"

#include "stretto/kernels/bf16_product.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/parameter_gradient.h"

namespace stretto::nn {
namespace {

// bf16 operands and a sum in fp32, on a CPU that multiplies them.
bool adds_directly(const Tensor& sum, const Tensor& a, const Tensor& b) {
  return sum.scalar_type() == at::kFloat && a.scalar_type() == at::kBFloat16 && a.device().is_cpu() &&
         kernels::has_bf16_product() && sum.is_contiguous() && a.is_contiguous() && b.is_contiguous();
}

}  // namespace

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;  // every processor with AMX has it, too
#else
  return false;
#endif
}

Tensor operand(const Tensor& x) {
  const bool wider = x.scalar_type() == at::kBFloat16 && x.device().is_cpu() && !cpu_has_bf16();
  return wider ? x.to(at::kFloat) : x;
}

Tensor product(const Tensor& x, const Tensor& weight) {
  return at::mm(x, operand(weight).t()).to(weight.scalar_type());
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight) {
  return at::mm(grad, operand(weight)).to(weight.scalar_type());
}

void add_input_gradient(const Tensor& sum, const Tensor& grad, const Tensor& weight) {
  const Tensor wide_weight = operand(weight);
  if (wide_weight.scalar_type() == sum.scalar_type()) {
    Tensor(sum).addmm_(grad, wide_weight);
  } else {
    Tensor(sum).add_(at::mm(grad, wide_weight));
  }
}

Tensor weight_gradient(const Tensor& weight, const Tensor& grad, const Tensor& x) {
  if (!has_gradient_buffer(weight)) return at::mm(grad.t(), x).to(weight.scalar_type());
  Tensor buffer = weight.grad();
  if (buffer.scalar_type() == grad.scalar_type()) {
    buffer.addmm_(grad.t(), x);
  } else if (adds_directly(buffer, grad, x)) {
    kernels::add_bf16_product(buffer, grad, x);
  } else {
    buffer.add_(at::mm(grad.t(), x));
  }
  return {};
}

Tensor bias_gradient(const Tensor& bias, const Tensor& grad) {
  const bool direct = has_gradient_buffer(bias);
  const auto dtype = direct ? bias.grad().scalar_type() : bias.scalar_type();
  const Tensor sum = at::sum(grad, {0}, /*keepdim=*/false, dtype);
  if (!direct) return sum;
  Tensor(bias.grad()).add_(sum);
  return {};
}

}  // namespace stretto::nn
