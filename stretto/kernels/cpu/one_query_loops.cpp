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

// All heads of a key are processed before the next key, because they are contiguous in memory.
template <class T>
class OneQuery {
 public:
  using R = Real<T>;

  // `memory`: per head, two padded rows, and a padded row of `longest_keys`.
  OneQuery(const AttentionCall<T>& call, int64_t longest_keys, R* memory)
      : call_(call),
        width_(call.width),
        row_(padded<R>(call.width)),
        score_row_(padded<R>(longest_keys)),
        q_(memory),
        mixed_(q_ + call.heads * row_),
        scores_(mixed_ + call.heads * row_) {}

  void run() {
    for (int64_t b = 0; b < call_.sequences; ++b) {
      if (call_.query_bounds[b + 1] == call_.query_bounds[b]) continue;
      first_key_ = call_.key_bounds[b];
      const int64_t keys = call_.key_bounds[b + 1] - first_key_;
      const int64_t position = call_.queries_are_last ? keys - 1 : 0;
      const int64_t end = call_.causal ? HWY_MIN(keys, position + 1) : keys;
      const int64_t begin = call_.window > 0 ? HWY_MAX(int64_t{0}, position + 1 - call_.window) : 0;
      attend(call_.query_bounds[b], begin, end);
    }
  }

 private:
  // The numbers of a key, of all its heads.
  const T* row(const StridedRows<T>& rows, int64_t key) const {
    return rows.memory + call_.key_rows[first_key_ + key] * rows.stride;
  }
  // The first number of the head of keys that a head of queries reads.
  int64_t column(int64_t head) const { return head / (call_.heads / call_.key_heads) * width_; }
  R* scores(int64_t head) const { return scores_ + head * score_row_; }

  void attend(int64_t query, int64_t begin, int64_t end) {
    for (int64_t head = 0; head < call_.heads; ++head) {
      R* q = q_ + head * row_;
      load_row(call_.q.memory + query * call_.q.stride + head * width_, width_, q);
      for (int64_t c = 0; c < width_; ++c) q[c] *= static_cast<R>(call_.scale);
    }
    for (int64_t key = begin; key < end; ++key) {
      const T* keys = row(call_.k, key);
      for (int64_t head = 0; head < call_.heads; ++head)
        scores(head)[key - begin] = product(keys + column(head), q_ + head * row_);
    }
    for (int64_t head = 0; head < call_.heads; ++head)
      call_.log_sum_exp[query * call_.heads + head] = normalise(scores(head), end - begin);
    zero(mixed_, call_.heads * row_);
    for (int64_t key = begin; key < end; ++key) {
      const T* values = row(call_.v, key);
      for (int64_t head = 0; head < call_.heads; ++head)
        add_row(scores(head)[key - begin], values + column(head), mixed_ + head * row_);
    }
    for (int64_t head = 0; head < call_.heads; ++head)
      store_row(mixed_ + head * row_, width_, call_.out + (query * call_.heads + head) * width_);
  }

  // Replaces scores by their softmax; returns the logarithm of the sum of their exponentials.
  R normalise(R* scores, int64_t count) const {
    const Lanes<R> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    R largest = -std::numeric_limits<R>::infinity();
    for (int64_t i = 0; i < count; ++i) largest = scores[i] > largest ? scores[i] : largest;
    auto sums = hn::Zero(d);
    for (int64_t i = 0; i < count; i += lanes) {
      const auto power = exp(d, hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, largest)));
      const auto weight = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count - i)), power);
      sums = hn::Add(sums, weight);
      hn::StoreU(weight, d, scores + i);
    }
    const R total = hn::GetLane(hn::SumOfLanes(d, sums));
    for (int64_t i = 0; i < count; ++i) scores[i] /= total;
    R log_total[HWY_MAX_BYTES / sizeof(R)];
    hn::StoreU(hn::Log(d, hn::Set(d, total)), d, log_total);
    return largest + log_total[0];
  }

  R product(const T* key, const R* q) const {
    const Lanes<R> d;
    auto sum = hn::Zero(d);
    for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d)))
      sum = hn::MulAdd(load_some(d, key + c, width_ - c), hn::LoadU(d, q + c), sum);
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  void add_row(R weight, const T* value, R* mixed) const {
    const Lanes<R> d;
    const auto factor = hn::Set(d, weight);
    for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d))) {
      const auto more = hn::MulAdd(factor, load_some(d, value + c, width_ - c), hn::LoadU(d, mixed + c));
      hn::StoreU(more, d, mixed + c);
    }
  }

  const AttentionCall<T>& call_;
  const int64_t width_, row_, score_row_;
  R *q_, *mixed_, *scores_;  // a row per head
  int64_t first_key_ = 0;    // of the sequence
};

void one_query_f32(const AttentionCall<float>& call, int64_t longest_keys, float* memory) {
  OneQuery(call, longest_keys, memory).run();
}
void one_query_bf16(const AttentionCall<Bf16>& call, int64_t longest_keys, float* memory) {
  OneQuery(call, longest_keys, memory).run();
}
void one_query_f64(const AttentionCall<double>& call, int64_t longest_keys, double* memory) {
  OneQuery(call, longest_keys, memory).run();
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(one_query_f32);
HWY_EXPORT(one_query_bf16);
HWY_EXPORT(one_query_f64);

template <class T>
struct Scratch {
  explicit Scratch(const AttentionCall<T>& call) : longest_keys(longest(call.key_bounds, call.sequences)) {
    constexpr int64_t padding = largest_vector / static_cast<int64_t>(sizeof(Real<T>));
    const int64_t per_head = 2 * (call.width + padding) + longest_keys + padding;
    memory.resize(static_cast<size_t>(call.heads * per_head));
  }
  int64_t longest_keys;
  std::vector<Real<T>> memory;
};

}  // namespace

void one_query_loop(const AttentionCall<float>& call) {
  Scratch scratch(call);
  HWY_DYNAMIC_DISPATCH(one_query_f32)(call, scratch.longest_keys, scratch.memory.data());
}
void one_query_loop(const AttentionCall<Bf16>& call) {
  Scratch scratch(call);
  HWY_DYNAMIC_DISPATCH(one_query_bf16)(call, scratch.longest_keys, scratch.memory.data());
}
void one_query_loop(const AttentionCall<double>& call) {
  Scratch scratch(call);
  HWY_DYNAMIC_DISPATCH(one_query_f64)(call, scratch.longest_keys, scratch.memory.data());
}

}  // namespace stretto::kernels
#endif
