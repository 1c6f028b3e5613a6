#include "stretto/kernels/norm.h"

#include "stretto/kernels/cpu/norm_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {
namespace {

void require_fit(const Tensor& x, const Norm& norm) {
  if (x.dim() != 2) throw ShapeError("norm: x is {}; expected rows [T, C]", describe(x));
  const int64_t rows = x.size(0), width = x.size(1);
  require_sizes("norm: weight", norm.weight, {width});
  require_sizes("norm: offset", norm.offset, {width});
  require_sizes("norm: bias", norm.bias, {width});
  require_sizes("norm: residual", norm.residual, {rows, width});
  require_sizes("norm: samples", norm.samples, {rows});
  require_sizes("norm: places", norm.places, {rows});
}

template <class T>
NormCall<T> norm_call(at::IntArrayRef sizes, const NormResult& result, const Norm& norm) {
  NormCall<T> call = {};
  call.rows = sizes[0];
  call.width = sizes[1];
  call.bias = memory_of<T>(norm.bias);
  call.residual = memory_of<T>(norm.residual);
  call.weight = memory_of<T>(norm.weight);
  call.offset = memory_of<T>(norm.offset);
  call.eps = norm.eps;
  call.samples = memory_of<int64_t>(norm.samples);
  call.places = memory_of<int64_t>(norm.places);
  call.before = drop_of(norm.before);
  call.after = drop_of(norm.after);
  call.sum = memory_of<T>(result.sum);
  call.out = memory_of<T>(result.out);
  call.mean = memory_of<Real<T>>(result.mean);
  call.rstd = memory_of<Real<T>>(result.rstd);
  return call;
}

Tensor dropped(const Tensor& x, const Dropout& dropout, const Norm& norm) {
  if (dropout.p == 0) return x;
  return x * dropout_mask({norm.samples, norm.places, 1}, x.size(1), dropout.p, dropout.key, x.scalar_type());
}

Norm widen_fp16(Norm norm) {
  for (Tensor* operand : {&norm.bias, &norm.residual, &norm.weight, &norm.offset})
    *operand = kernels::widen_fp16(*operand);
  return norm;
}

}  // namespace

NormResult norm_rows(const Tensor& x, const Norm& norm) {
  if (is_fp16(x)) {
    NormResult result = norm_rows(kernels::widen_fp16(x), widen_fp16(norm));
    result.sum = result.sum.to(at::kHalf);
    if (result.out.defined()) result.out = result.out.to(at::kHalf);
    return result;
  }
  require_fit(x, norm);
  const auto statistics = x.options().dtype(computed_type(x.scalar_type()));
  NormResult result;
  result.sum = x;
  if (norm.weight.defined()) {
    result.out = at::empty_like(x);
    result.mean = at::empty({x.size(0)}, statistics);
    result.rstd = at::empty({x.size(0)}, statistics);
  }
  with_loop_type(x.scalar_type(),
                 [&](auto number) { norm_loop(norm_call<decltype(number)>(x.sizes(), result, norm)); });
  return result;
}

NormGradients norm_rows_backward(const Tensor& grad, const NormResult& result, const Norm& norm,
                                 const NormSums& sums) {
  if (is_fp16(grad)) {
    const NormResult wide = {{}, kernels::widen_fp16(result.sum), result.mean, result.rstd};
    const auto [residual, x] = norm_rows_backward(kernels::widen_fp16(grad), wide, widen_fp16(norm), sums);
    const Tensor narrow = residual.to(at::kHalf);
    return {narrow, x.is_same(residual) ? narrow : x.to(at::kHalf)};
  }
  require_sizes("norm: sum", result.sum, grad.sizes());
  NormGradients gradients;
  gradients.residual = norm.weight.defined() ? at::empty_like(grad) : grad;
  gradients.x = norm.before.p > 0 ? at::empty_like(grad) : gradients.residual;
  if (!norm.weight.defined() && norm.before.p == 0 && !sums.bias.defined()) return gradients;
  with_loop_type(grad.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = norm_call<T>(grad.sizes(), result, norm);
    call.grad_out = memory_of<T>(grad);
    call.grad_sum = norm.weight.defined() ? memory_of<T>(gradients.residual) : nullptr;
    call.grad_input = norm.before.p > 0 ? memory_of<T>(gradients.x) : nullptr;
    call.grad_weight = memory_of<Real<T>>(sums.weight);
    call.grad_offset = memory_of<Real<T>>(sums.offset);
    call.grad_bias = memory_of<Real<T>>(sums.bias);
    norm_loop(call);
  });
  return gradients;
}

Tensor norm_rows_reference(const Tensor& x, const Norm& norm) {
  if (is_fp16(x)) return norm_rows_reference(kernels::widen_fp16(x), widen_fp16(norm)).to(at::kHalf);
  Tensor sum = dropped(norm.bias.defined() ? x + norm.bias : x, norm.before, norm);
  if (norm.residual.defined()) sum = sum + norm.residual;
  if (!norm.weight.defined()) return sum;
  if (norm.offset.defined())
    return dropped(at::layer_norm(sum, {x.size(1)}, norm.weight, norm.offset, norm.eps), norm.after, norm);
  const Tensor rstd = (sum.square().mean(1, /*keepdim=*/true) + norm.eps).rsqrt();
  return dropped(norm.weight * (sum * rstd), norm.after, norm);
}

}  // namespace stretto::kernels
