#include "stretto/kernels/cpu/one_query_loops.h"

#include <limits>
#include <vector>

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/one_query_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

template <class T>
class OneQuery {
 public:
  using R = Real<T>;

  // `memory`: for two padded rows, and a padded row of the keys of the longest sequence.
  OneQuery(const AttentionCall<T>& call, R* memory)
      : call_(call),
        width_(call.width),
        q_(memory),
        mixed_(memory + padded<R>(width_)),
        scores_(memory + 2 * padded<R>(width_)) {}

  void run() {
    for (int64_t b = 0; b < call_.sequences; ++b) {
      if (call_.query_bounds[b + 1] == call_.query_bounds[b]) continue;
      first_key_ = call_.key_bounds[b];
      const int64_t keys = call_.key_bounds[b + 1] - first_key_;
      const int64_t position = call_.queries_are_last ? keys - 1 : 0;
      end_ = call_.causal ? HWY_MIN(keys, position + 1) : keys;
      begin_ = call_.window > 0 ? HWY_MAX(int64_t{0}, position + 1 - call_.window) : 0;
      for (int64_t head = 0; head < call_.heads; ++head) attend(call_.query_bounds[b], head);
    }
  }

 private:
  // The numbers of a key that a head of queries reads.
  const T* row(const StridedRows<T>& rows, int64_t key, int64_t head) const {
    const int64_t index = call_.key_rows != nullptr ? call_.key_rows[first_key_ + key] : first_key_ + key;
    return rows.memory + index * rows.stride + head / (call_.heads / call_.key_heads) * width_;
  }

  void attend(int64_t query, int64_t head) {
    const Lanes<R> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    load_row(call_.q.memory + query * call_.q.stride + head * width_, width_, q_);
    for (int64_t c = 0; c < width_; ++c) q_[c] *= static_cast<R>(call_.scale);
    R largest = -std::numeric_limits<R>::infinity();
    for (int64_t key = begin_; key < end_; ++key) {
      const R score = scores_[key - begin_] = product(row(call_.k, key, head));
      largest = score > largest ? score : largest;
    }
    const int64_t count = end_ - begin_;
    auto sums = hn::Zero(d);
    for (int64_t i = 0; i < count; i += lanes) {
      const auto power = exp(d, hn::Sub(hn::LoadU(d, scores_ + i), hn::Set(d, largest)));
      const auto weight = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count - i)), power);
      sums = hn::Add(sums, weight);
      hn::StoreU(weight, d, scores_ + i);
    }
    const R total = hn::GetLane(hn::SumOfLanes(d, sums));
    zero(mixed_, padded<R>(width_));
    for (int64_t key = begin_; key < end_; ++key)
      add_row(scores_[key - begin_] / total, row(call_.v, key, head));
    store_row(mixed_, width_, call_.out + (query * call_.heads + head) * width_);
    R log_total[HWY_MAX_BYTES / sizeof(R)];
    hn::StoreU(hn::Log(d, hn::Set(d, total)), d, log_total);
    call_.log_sum_exp[query * call_.heads + head] = largest + log_total[0];
  }

  R product(const T* key) const {
    const Lanes<R> d;
    auto sum = hn::Zero(d);
    for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d)))
      sum = hn::MulAdd(load_some(d, key + c, width_ - c), hn::LoadU(d, q_ + c), sum);
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  void add_row(R weight, const T* value) {
    const Lanes<R> d;
    const auto factor = hn::Set(d, weight);
    for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d))) {
      const auto more = hn::MulAdd(factor, load_some(d, value + c, width_ - c), hn::LoadU(d, mixed_ + c));
      hn::StoreU(more, d, mixed_ + c);
    }
  }

  const AttentionCall<T>& call_;
  const int64_t width_;
  R *q_, *mixed_, *scores_;
  int64_t first_key_ = 0, begin_ = 0, end_ = 0;  // the keys that the query attends to
};

void one_query_f32(const AttentionCall<float>& call, float* memory) { OneQuery(call, memory).run(); }
void one_query_bf16(const AttentionCall<Bf16>& call, float* memory) { OneQuery(call, memory).run(); }
void one_query_f64(const AttentionCall<double>& call, double* memory) { OneQuery(call, memory).run(); }

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(one_query_f32);
HWY_EXPORT(one_query_bf16);
HWY_EXPORT(one_query_f64);

template <class T>
std::vector<Real<T>> scratch_of(const AttentionCall<T>& call) {
  constexpr int64_t padding = largest_vector / static_cast<int64_t>(sizeof(Real<T>));
  const int64_t keys = longest(call.key_bounds, call.sequences);
  return std::vector<Real<T>>(static_cast<size_t>(2 * call.width + keys + 3 * padding));
}

}  // namespace

void one_query_loop(const AttentionCall<float>& call) {
  HWY_DYNAMIC_DISPATCH(one_query_f32)(call, scratch_of(call).data());
}
void one_query_loop(const AttentionCall<Bf16>& call) {
  HWY_DYNAMIC_DISPATCH(one_query_bf16)(call, scratch_of(call).data());
}
void one_query_loop(const AttentionCall<double>& call) {
  HWY_DYNAMIC_DISPATCH(one_query_f64)(call, scratch_of(call).data());
}

}  // namespace stretto::kernels
#endif
