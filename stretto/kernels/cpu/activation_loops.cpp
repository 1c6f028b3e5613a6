#include "stretto/kernels/cpu/activation_loops.h"

#include <vector>

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/activation_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

// A value of an activation function and its derivative at the same place.
template <class V>
struct Point {
  V value, derivative;
};

// Each struct computes an activation function at x. What the caller does not use is not computed.
template <class D>
struct Gelu {
  using V = hn::Vec<D>;
  static HWY_INLINE Point<V> at(D d, V x) {
    V density, cumulative;
    normal(d, x, density, cumulative);
    return {hn::Mul(x, cumulative), hn::MulAdd(x, density, cumulative)};
  }
};

// x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): half of 1 + tanh(u) is sigmoid(2 u).
template <class D>
struct GeluTanh {
  using V = hn::Vec<D>;
  static constexpr double root = 1.5957691216057308, cubic = 0.044715;  // 2 sqrt(2 / pi)
  static HWY_INLINE Point<V> at(D d, V x) {
    const V square = hn::Mul(x, x);
    const V inner = hn::MulAdd(square, set(d, cubic), set(d, 1));
    const V s = sigmoid(d, hn::Mul(hn::Mul(set(d, root), x), inner));
    const V slope = hn::Mul(set(d, root), hn::MulAdd(square, set(d, 3 * cubic), set(d, 1)));
    const V bend = hn::Mul(hn::Mul(s, hn::Sub(set(d, 1), s)), slope);
    return {hn::Mul(x, s), hn::MulAdd(x, bend, s)};
  }
  static HWY_INLINE V set(D d, double value) { return hn::Set(d, static_cast<hn::TFromD<D>>(value)); }
};

template <class D>
struct Relu {
  using V = hn::Vec<D>;
  static HWY_INLINE Point<V> at(D d, V x) {
    return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x),
            hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1))};
  }
};

template <class D>
struct Silu {
  using V = hn::Vec<D>;
  static HWY_INLINE Point<V> at(D d, V x) {
    const V s = sigmoid(d, x), value = hn::Mul(x, s);
    return {value, hn::MulAdd(value, hn::Sub(hn::Set(d, 1), s), s)};
  }
};

template <class D>
struct Sigmoid {
  using V = hn::Vec<D>;
  static HWY_INLINE Point<V> at(D d, V x) {
    const V s = sigmoid(d, x);
    return {s, hn::Mul(s, hn::Sub(hn::Set(d, 1), s))};
  }
};

template <class D>
struct Tanh {
  using V = hn::Vec<D>;
  static HWY_INLINE Point<V> at(D d, V x) {
    const V y = hn::IfThenElse(hn::Eq(x, x), hn::Tanh(d, x), x);
    return {y, hn::NegMulAdd(y, y, hn::Set(d, 1))};
  }
};

// memory: 2 rows of padded(width) numbers.
template <template <class> class Shape, class T>
HWY_INLINE void each_row(const ActivationCall<T>& call, Real<T>* memory) {
  using R = Real<T>;
  using D = Lanes<R>;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = call.width, row = padded<R>(width);
  R *const bias = memory, *const sums = bias + row;
  zero(memory, 2 * row);
  if (call.bias != nullptr) load_row(call.bias, width, bias);
  for (int64_t i = 0; i < call.rows; ++i) {
    const T* const in = call.in + i * width;
    const T* const factor = call.factor == nullptr ? nullptr : call.factor + i * width;
    T* const out = call.out + i * width;
    if (call.grad == nullptr) {
      for (int64_t c = 0; c < width; c += lanes) {
        const auto x = hn::Add(load_some(d, in + c, width - c), hn::LoadU(d, bias + c));
        auto value = Shape<D>::at(d, x).value;
        if (factor != nullptr) value = hn::Mul(value, load_some(d, factor + c, width - c));
        store_some(d, value, out + c, width - c);
      }
      continue;
    }
    T* const grads = call.grad + i * width;
    for (int64_t c = 0; c < width; c += lanes) {
      const auto x = hn::Add(load_some(d, in + c, width - c), hn::LoadU(d, bias + c));
      auto grad = load_some(d, grads + c, width - c);
      auto [value, derivative] = Shape<D>::at(d, x);
      if (factor != nullptr) {
        const auto times = load_some(d, factor + c, width - c);
        store_some(d, hn::Mul(grad, value), call.grad_factor + i * width + c, width - c);
        value = hn::Mul(value, times);
        grad = hn::Mul(grad, times);
      }
      store_some(d, value, out + c, width - c);
      grad = hn::Mul(grad, derivative);
      store_some(d, grad, grads + c, width - c);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), grad), d, sums + c);
    }
  }
  if (call.grad_bias == nullptr) return;
  for (int64_t c = 0; c < width; ++c) call.grad_bias[c] += sums[c];
}

template <class T>
HWY_INLINE void choose(const ActivationCall<T>& call, Real<T>* memory) {
  switch (call.activation) {
    case Activation::gelu:
      return each_row<Gelu>(call, memory);
    case Activation::gelu_tanh:
      return each_row<GeluTanh>(call, memory);
    case Activation::relu:
      return each_row<Relu>(call, memory);
    case Activation::silu:
      return each_row<Silu>(call, memory);
    case Activation::tanh:
      return each_row<Tanh>(call, memory);
    case Activation::sigmoid:
      return each_row<Sigmoid>(call, memory);
  }
}

void activation_f32(const ActivationCall<float>& call, float* memory) { choose(call, memory); }
void activation_bf16(const ActivationCall<Bf16>& call, float* memory) { choose(call, memory); }
void activation_f64(const ActivationCall<double>& call, double* memory) { choose(call, memory); }

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(activation_f32);
HWY_EXPORT(activation_bf16);
HWY_EXPORT(activation_f64);

template <class R>
std::vector<R> two_rows(int64_t width) {
  return std::vector<R>(static_cast<size_t>(2 * (width + largest_vector / 4)));
}

}  // namespace

void activation_loop(const ActivationCall<float>& call) {
  HWY_DYNAMIC_DISPATCH(activation_f32)(call, two_rows<float>(call.width).data());
}
void activation_loop(const ActivationCall<Bf16>& call) {
  HWY_DYNAMIC_DISPATCH(activation_bf16)(call, two_rows<float>(call.width).data());
}
void activation_loop(const ActivationCall<double>& call) {
  HWY_DYNAMIC_DISPATCH(activation_f64)(call, two_rows<double>(call.width).data());
}

}  // namespace stretto::kernels
#endif
