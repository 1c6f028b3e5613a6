#include "stretto/kernels/cpu/norm_loops.h"

#include <vector>

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/norm_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

constexpr int64_t drop_columns = 256;  // columns of a mask generated at once

// Computes row by row. Intermediate results of a row are kept in the type of the computation, padded with
// zeros to whole vectors.
template <class T>
class NormRows {
 public:
  using R = Real<T>;
  using D = Lanes<R>;
  using V = hn::Vec<D>;

  // memory: 9 rows of padded(width) numbers.
  NormRows(const NormCall<T>& call, R* memory)
      : call_(call),
        width_(call.width),
        row_(padded<R>(call.width)),
        weight_(memory),
        offset_(weight_ + row_),
        bias_(offset_ + row_),
        x_(bias_ + row_),
        y_(x_ + row_),
        kept_(y_ + row_),
        grad_weight_(kept_ + row_),
        grad_offset_(grad_weight_ + row_),
        grad_bias_(grad_offset_ + row_) {
    zero(memory, 9 * row_);
    if (call.weight != nullptr) load_row(call.weight, width_, weight_);
    if (call.offset != nullptr) load_row(call.offset, width_, offset_);
    if (call.bias != nullptr) load_row(call.bias, width_, bias_);
  }

  void forward(int64_t row) {
    const int64_t width = width_, lanes = static_cast<int64_t>(hn::Lanes(D()));
    const D d;
    R *const x = x_, *const kept = kept_;
    const R *const weight = weight_, *const offset = offset_, *const bias = bias_;
    T* const sums = call_.sum + row * width;
    T* const out = call_.out + row * width;
    const T* const residual = call_.residual == nullptr ? nullptr : call_.residual + row * width;
    const bool drops = draw(call_.before, row), drops_after = call_.after.threshold > 0;
    const bool adds = drops || call_.bias != nullptr || residual != nullptr;
    V total = hn::Zero(d);
    for (int64_t c = 0; c < width; c += lanes) {
      V value = hn::Add(load_some(d, sums + c, width - c), hn::LoadU(d, bias + c));
      if (drops) value = hn::Mul(value, hn::LoadU(d, kept + c));
      if (residual != nullptr) value = hn::Add(value, load_some(d, residual + c, width - c));
      if (adds) store_some(d, value, sums + c, width - c);
      if (adds && sizeof(T) < sizeof(R))
        value = load_some(d, sums + c, width - c);  // rounded as the backward pass reads it
      hn::StoreU(value, d, x + c);
      total = hn::Add(total, value);
    }
    if (call_.weight == nullptr) return;
    const R mean = call_.offset == nullptr ? R{0} : sum_of(total) / static_cast<R>(width);
    const R rstd = 1 / std::sqrt(squares_around(mean) / static_cast<R>(width) + static_cast<R>(call_.eps));
    call_.mean[row] = mean;
    call_.rstd[row] = rstd;
    draw(call_.after, row);
    for (int64_t c = 0; c < width; c += lanes) {
      const V unit = hn::Mul(hn::Sub(hn::LoadU(d, x + c), hn::Set(d, mean)), hn::Set(d, rstd));
      V value = hn::MulAdd(unit, hn::LoadU(d, weight + c), hn::LoadU(d, offset + c));
      if (drops_after) value = hn::Mul(value, hn::LoadU(d, kept + c));
      store_some(d, value, out + c, width - c);
    }
  }

  void backward(int64_t row) {
    if (call_.weight == nullptr) return backward_of_sum(row);
    const int64_t width = width_, lanes = static_cast<int64_t>(hn::Lanes(D()));
    const D d;
    R *const units = x_, *const grads = y_, *const kept = kept_;
    R *const grad_weight = grad_weight_, *const grad_offset = grad_offset_, *const grad_bias = grad_bias_;
    const R* const weight = weight_;
    const T *const sums = call_.sum + row * width, *const grad_out = call_.grad_out + row * width;
    T* const grad_sum = call_.grad_sum + row * width;
    T* const grad_input = call_.grad_input == nullptr ? nullptr : call_.grad_input + row * width;
    const V mean = hn::Set(d, call_.mean[row]), rstd = hn::Set(d, call_.rstd[row]);
    const bool drops_after = draw(call_.after, row);
    V sum = hn::Zero(d), product = hn::Zero(d);
    for (int64_t c = 0; c < width; c += lanes) {
      V grad = load_some(d, grad_out + c, width - c);
      if (drops_after) grad = hn::Mul(grad, hn::LoadU(d, kept + c));
      const V unit = hn::Mul(hn::Sub(load_some(d, sums + c, width - c), mean), rstd);
      const V weighted = hn::Mul(grad, hn::LoadU(d, weight + c));
      hn::StoreU(hn::MulAdd(grad, unit, hn::LoadU(d, grad_weight + c)), d, grad_weight + c);
      hn::StoreU(hn::Add(grad, hn::LoadU(d, grad_offset + c)), d, grad_offset + c);
      sum = hn::Add(sum, weighted);
      product = hn::MulAdd(weighted, unit, product);
      hn::StoreU(weighted, d, grads + c);
      hn::StoreU(unit, d, units + c);
    }
    const R per_column = 1 / static_cast<R>(width);
    const V mean_grad = hn::Set(d, call_.offset == nullptr ? R{0} : sum_of(sum) * per_column);
    const V mean_product = hn::Set(d, sum_of(product) * per_column);
    const bool drops = draw(call_.before, row);
    for (int64_t c = 0; c < width; c += lanes) {
      const V centred = hn::Sub(hn::LoadU(d, grads + c), mean_grad);
      V grad = hn::Mul(hn::NegMulAdd(hn::LoadU(d, units + c), mean_product, centred), rstd);
      store_some(d, grad, grad_sum + c, width - c);
      if (drops) {
        grad = hn::Mul(grad, hn::LoadU(d, kept + c));
        store_some(d, grad, grad_input + c, width - c);
      }
      hn::StoreU(hn::Add(grad, hn::LoadU(d, grad_bias + c)), d, grad_bias + c);
    }
  }

  void backward_of_sum(int64_t row) {
    const D d;
    const bool drops = draw(call_.before, row);
    const T* const grad_out = call_.grad_out + row * width_;
    for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d))) {
      V grad = load_some(d, grad_out + c, width_ - c);
      if (drops) {
        grad = hn::Mul(grad, hn::LoadU(d, kept_ + c));
        store_some(d, grad, call_.grad_input + row * width_ + c, width_ - c);
      }
      hn::StoreU(hn::Add(grad, hn::LoadU(d, grad_bias_ + c)), d, grad_bias_ + c);
    }
  }

  // Rows per partial sum of parameter gradients, which limits rounding errors.
  static constexpr int64_t rows_per_sum = 128;
  void begin_sums() { zero(grad_weight_, 3 * row_); }
  void end_sums() {
    add_sums(grad_weight_, call_.grad_weight);
    add_sums(grad_offset_, call_.grad_offset);
    add_sums(grad_bias_, call_.grad_bias);
  }

 private:
  void add_sums(const R* sums, R* to) const {
    if (to == nullptr) return;
    for (int64_t c = 0; c < width_; ++c) to[c] += sums[c];
  }

  R sum_of(V values) const { return hn::GetLane(hn::SumOfLanes(D(), values)); }

  R squares_around(R mean) const {
    const D d;
    V sum = hn::Zero(d);
    for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d))) {
      const auto inside = hn::FirstN(d, static_cast<size_t>(width_ - c));
      const V difference = hn::IfThenElseZero(inside, hn::Sub(hn::LoadU(d, x_ + c), hn::Set(d, mean)));
      sum = hn::MulAdd(difference, difference, sum);
    }
    return sum_of(sum);
  }

  // Fills kept_ with the row's mask; returns false without dropout.
  bool draw(const Drop& how, int64_t row) {
    if (how.threshold == 0) return false;
    const RowCounter counter = row_counter(call_.samples[row], call_.places[row], 0);
    for (int64_t first = 0; first < width_; first += drop_columns) {
      const int64_t count = HWY_MIN(drop_columns, width_ - first);
      philox_words(words_, first / 4, drop_columns / 4, (count + 3) / 4, counter, how.key);
      words_to_scales(words_, count, how, kept_ + first);
    }
    return true;
  }

  const NormCall<T>& call_;
  const int64_t width_, row_;
  R *const weight_, *const offset_, *const bias_, *const x_, *const y_, *const kept_;
  R *const grad_weight_, *const grad_offset_, *const grad_bias_;
  uint32_t words_[drop_columns + spare_words];
};

template <class T>
HWY_INLINE void each_row(const NormCall<T>& call, Real<T>* memory) {
  NormRows<T> one(call, memory);
  if (call.grad_out == nullptr) {
    for (int64_t row = 0; row < call.rows; ++row) one.forward(row);
    return;
  }
  for (int64_t first = 0; first < call.rows; first += NormRows<T>::rows_per_sum) {
    one.begin_sums();
    const int64_t end = HWY_MIN(call.rows, first + NormRows<T>::rows_per_sum);
    for (int64_t row = first; row < end; ++row) one.backward(row);
    one.end_sums();
  }
}

void norm_f32(const NormCall<float>& call, float* memory) { each_row(call, memory); }
void norm_bf16(const NormCall<Bf16>& call, float* memory) { each_row(call, memory); }
void norm_f64(const NormCall<double>& call, double* memory) { each_row(call, memory); }

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(norm_f32);
HWY_EXPORT(norm_bf16);
HWY_EXPORT(norm_f64);

template <class R>
std::vector<R> nine_rows(int64_t width) {
  return std::vector<R>(static_cast<size_t>(9 * (width + largest_vector / 4)));
}

}  // namespace

void norm_loop(const NormCall<float>& call) {
  HWY_DYNAMIC_DISPATCH(norm_f32)(call, nine_rows<float>(call.width).data());
}
void norm_loop(const NormCall<Bf16>& call) {
  HWY_DYNAMIC_DISPATCH(norm_bf16)(call, nine_rows<float>(call.width).data());
}
void norm_loop(const NormCall<double>& call) {
  HWY_DYNAMIC_DISPATCH(norm_f64)(call, nine_rows<double>(call.width).data());
}

}  // namespace stretto::kernels
#endif
