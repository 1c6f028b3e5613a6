#include "stretto/kernels/cpu/cross_entropy_loops.h"

#include <cmath>

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/cross_entropy_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

// The largest logit of a row. It may miss a NaN, which the sum of exponentials propagates.
template <class T>
HWY_INLINE Real<T> largest(const T* row, int64_t n) {
  using R = Real<T>;
  const Lanes<R> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  R most = number(row[0]);
  if (n >= lanes) {
    auto most_of = load(d, row);
    for (i = lanes; i + lanes <= n; i += lanes) most_of = hn::Max(most_of, load(d, row + i));
    most = hn::GetLane(hn::MaxOfLanes(d, most_of));
  }
  for (; i < n; ++i) {
    const R value = number(row[i]);
    if (value > most) most = value;
  }
  return most;
}

// sum(exp(row - most)); the exponentials are written to `powers` unless it is null. Blocks of a row are
// summed in fp32 and added up in double, which stays exact for large vocabularies.
template <class T>
HWY_INLINE double sum_exp(const T* row, int64_t n, Real<T> most, Real<T>* powers) {
  using R = Real<T>;
  const Lanes<R> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t part = 32 * lanes;
  const auto shift = hn::Set(d, most);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += part) {
    const int64_t end = begin + part < n ? begin + part : n;
    auto sums = hn::Zero(d);
    for (int64_t i = begin; i < end; i += lanes) {
      const auto power = exp(d, hn::Sub(load_some(d, row + i, end - i), shift));
      if (powers != nullptr) store_some(d, power, powers + i, end - i);
      const auto there = hn::FirstN(d, static_cast<size_t>(end - i < lanes ? end - i : lanes));
      sums = hn::Add(sums, hn::IfThenElseZero(there, power));
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
  }
  return total;
}

template <class T>
HWY_INLINE void gradient(const T* row, int64_t n, const Real<T>* normaliser, Real<T> scale, T* out) {
  const Lanes<Real<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto most = hn::Set(d, normaliser[0]), log_sum = hn::Set(d, normaliser[1]),
             factor = hn::Set(d, scale);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto share = exp(d, hn::Sub(hn::Sub(load_some(d, row + i, n - i), most), log_sum));
    store_some(d, hn::Mul(share, factor), out + i, n - i);
  }
}

template <class T>
HWY_INLINE void multiply(const Real<T>* row, int64_t n, Real<T> factor, T* out) {
  const Lanes<Real<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::Set(d, factor);
  for (int64_t i = 0; i < n; i += lanes)
    store_some(d, hn::Mul(load_some(d, row + i, n - i), all), out + i, n - i);
}

HWY_INLINE void store_number(float value, float* to) { *to = value; }
HWY_INLINE void store_number(double value, double* to) { *to = value; }
HWY_INLINE void store_number(float value, Bf16* to) {
  const Lanes<float> d;
  store_some(d, hn::Set(d, value), to, 1);
}

// Both passes over one row, while it is in the caches; returns its cross entropy.
template <class T>
HWY_INLINE double both_passes(const CrossEntropyCall<T>& call, int64_t i) {
  using R = Real<T>;
  const int64_t label = call.labels[i];
  const T* const row = call.logits + i * call.classes;
  T* const grad = call.grad_logits + i * call.classes;
  const R most = largest(row, call.classes), at_label = number(row[label]);
  const double total = sum_exp(row, call.classes, most, call.powers);
  const R scale = static_cast<R>(call.grad_sum), factor = static_cast<R>(call.grad_sum / total);
  multiply(call.powers, call.classes, factor, grad);
  store_number(call.powers[label] * factor - scale, grad + label);
  return static_cast<double>(most) - static_cast<double>(at_label) + std::log(total);
}

template <class T>
HWY_INLINE void each_row(const CrossEntropyCall<T>& call) {
  using R = Real<T>;
  double sum = 0;
  for (int64_t i = 0; i < call.rows; ++i) {
    const T* const row = call.logits + i * call.classes;
    const int64_t label = call.labels[i];
    const bool counts = label != call.ignored;
    if (counts && call.powers != nullptr) {
      sum += both_passes(call, i);
      continue;
    }
    if (call.grad_logits == nullptr) {
      R* const normaliser = call.normaliser + 2 * i;
      normaliser[0] = normaliser[1] = 0;
      if (!counts) continue;
      normaliser[0] = largest(row, call.classes);
      normaliser[1] =
          static_cast<R>(std::log(sum_exp<T>(row, call.classes, normaliser[0], /*powers=*/nullptr)));
      const double below = static_cast<double>(normaliser[0]) - static_cast<double>(number(row[label]));
      sum += below + static_cast<double>(normaliser[1]);
      continue;
    }
    T* const grad = call.grad_logits + i * call.classes;
    if (!counts) {
      for (int64_t c = 0; c < call.classes; ++c) grad[c] = T{};
      continue;
    }
    const R* const normaliser = call.normaliser + 2 * i;
    const R scale = static_cast<R>(call.grad_sum);
    const R share = std::exp(number(row[label]) - normaliser[0] - normaliser[1]);
    gradient(row, call.classes, normaliser, scale, grad);
    store_number((share - 1) * scale, grad + label);
  }
  if (call.sum != nullptr) *call.sum = sum;
}

void cross_entropy_f32(const CrossEntropyCall<float>& call) { each_row(call); }
void cross_entropy_bf16(const CrossEntropyCall<Bf16>& call) { each_row(call); }
void cross_entropy_f64(const CrossEntropyCall<double>& call) { each_row(call); }

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(cross_entropy_f32);
HWY_EXPORT(cross_entropy_bf16);
HWY_EXPORT(cross_entropy_f64);

}  // namespace

void cross_entropy_loop(const CrossEntropyCall<float>& call) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_f32)(call);
}
void cross_entropy_loop(const CrossEntropyCall<Bf16>& call) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_bf16)(call);
}
void cross_entropy_loop(const CrossEntropyCall<double>& call) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_f64)(call);
}

}  // namespace stretto::kernels
#endif
