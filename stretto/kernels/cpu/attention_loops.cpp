#include "stretto/kernels/cpu/attention_loops.h"

#include <limits>
#include <vector>

#include "stretto/kernels/cpu/one_query_loops.h"
#include "stretto/kernels/cpu/pair_products.h"
#include "stretto/kernels/cpu/pair_tiles.h"
#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/attention_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/head_rows-inl.h"
#include "stretto/kernels/cpu/simd-inl.h"
#include "stretto/kernels/cpu/tile_products-inl.h"

// Attention by tiles of tile_queries x tile_keys scores that stay in the caches. The forward pass keeps a
// running maximum and sum per row (online softmax: Milakov & Gimelshein 2018; Dao et al. 2022, algorithm 1)
// and saves only the logarithm of the sum; the backward pass recomputes the weights from it (Dao et al. 2022,
// algorithm 4).
HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

constexpr int64_t tile_queries = 64;
constexpr int64_t tile_keys = 64;

// Processes one head of keys and values of one sequence and, one after the other, the heads of queries that
// read it. For `pairs`, weights and their gradients are rounded to bf16, too.
template <class T, bool pairs>
class Head : HeadRows<T, pairs> {
  using Base = HeadRows<T, pairs>;
  using Base::along_row_, Base::row_, Base::width_;
  using Base::multiply_row, Base::pack, Base::transpose, Base::units, Base::unpack;
  using typename Base::R, typename Base::Rows, typename Base::Unit;

 public:
  Head(const AttentionCall<T>& call, const AttentionScratch<R>& scratch)
      : Base(call.width), call_(call), scale_(static_cast<R>(call.scale)) {
    R* free = scratch.memory;
    const auto take = [&](auto*& part, int64_t count) {
      part = reinterpret_cast<decltype(part + 0)>(free);
      free += count;
    };
    const auto take_rows = [&](Rows& rows, int64_t count) {
      take(rows.along, count * along_row_);
      rows.down = rows.along;
      if (pairs) take(rows.down, units(count) * row_);
    };
    take_rows(q_, scratch.longest_queries);
    take_rows(grad_out_, scratch.longest_queries);
    take(grad_q_, scratch.longest_queries * row_);
    take(delta_, scratch.longest_queries);
    take_rows(k_, scratch.longest_keys);
    take_rows(v_, scratch.longest_keys);
    take(keys_across_, (scratch.longest_keys + tile_keys) * width_);
    take(values_across_, (scratch.longest_keys + tile_keys) * width_);
    take(grad_k_,
         // the forward pass sums a tile's weighted values here
         (scratch.longest_keys + tile_queries) * row_);
    take(grad_v_, scratch.longest_keys * row_);
  }

  void forward(int64_t sequence, int64_t key_head) {
    open_keys(sequence, key_head);
    for (int64_t i = 0; i < keys_; i += tile_keys) transpose_tile(k_.along, i, keys_across_);
    for (int64_t head = key_head * group(); head < (key_head + 1) * group(); ++head) {
      open_queries(head);
      for (int64_t i = 0; i < queries_; i += rows_of_tile(i)) forward_tile(i);
    }
  }

  void backward(int64_t sequence, int64_t key_head) {
    open_keys(sequence, key_head);
    zero(grad_k_, keys_ * row_);
    zero(grad_v_, keys_ * row_);
    for (int64_t head = key_head * group(); head < (key_head + 1) * group(); ++head) {
      open_queries(head);
      unpack({const_cast<T*>(call_.grad_out), stride()}, first_query_, queries_, head_, R{1}, grad_out_);
      find_deltas();
      zero(grad_q_, queries_ * row_);
      for (int64_t j = 0; j < keys_; j += tile_keys)
        backward_tile(j, /*is_first=*/head == key_head * group());
      pack(grad_q_, queries_, scale_, call_.grad_q, first_query_, head_);
    }
    pack(grad_k_, keys_, pairs ? scale_ : R{1}, call_.grad_k, first_key_, key_head);
    pack(grad_v_, keys_, R{1}, call_.grad_v, first_key_, key_head);
  }

 private:
  int64_t group() const { return call_.heads / call_.key_heads; }  // heads of queries that read this head
  int64_t stride() const { return call_.heads * width_; }
  // The queries of the tile that begins at `query`. AMX multiplies 16 rows at once.
  int64_t rows_of_tile(int64_t query) const {
    const int64_t left = HWY_MIN(tile_queries, queries_ - query);
    return left < 16 ? left : left / 16 * 16;
  }
  int64_t tile_width(int64_t key) const { return HWY_MIN(tile_keys, keys_ - key); }
  // The number of keys, from the beginning of the sequence, that a query attends to.
  int64_t seen_by(int64_t query) const {
    return call_.causal ? HWY_MIN(keys_, first_position_ + query + 1) : keys_;
  }
  // The first key that the query attends to.
  int64_t first_seen_by(int64_t query) const {
    return call_.window > 0 ? HWY_MAX(int64_t{0}, first_position_ + query + 1 - call_.window) : 0;
  }
  // The keys of the tile at `key` that a query attends to, counted from the start of the tile.
  struct Seen {
    int64_t begin, end;
    bool none() const { return begin >= end; }
  };
  Seen seen_in_tile(int64_t query, int64_t key) const {
    return {HWY_MAX(int64_t{0}, first_seen_by(query) - key),
            HWY_MAX(int64_t{0}, HWY_MIN(tile_width(key), seen_by(query) - key))};
  }
  // Zeroes the scores of keys that the query does not attend to.
  void zero_around(R* row, const Seen& seen, int64_t key) const {
    zero(row, HWY_MIN(seen.begin, tile_width(key)));
    zero(row + seen.end, tile_width(key) - seen.end);
  }
  // The start of a tile's columns in keys_across_: `width_` rows of padded(tile_width) numbers.
  Unit* across(Unit* all, int64_t key) const { return all + key * width_; }
  void transpose_tile(const Unit* rows, int64_t key, Unit* all) const {
    transpose(rows + key * along_row_, tile_width(key), across(all, key));
  }

  void open_keys(int64_t sequence, int64_t key_head) {
    sample_ = call_.samples[sequence];
    first_query_ = call_.query_bounds[sequence];
    queries_ = call_.query_bounds[sequence + 1] - first_query_;
    first_key_ = call_.key_bounds[sequence];
    keys_ = call_.key_bounds[sequence + 1] - first_key_;
    first_position_ = call_.queries_are_last ? keys_ - queries_ : 0;
    first_place_ = call_.first_places[sequence] + first_position_;
    unpack_keys(call_.k, key_head, k_);
    unpack_keys(call_.v, key_head, v_);
  }

  // Numbers are scaled before products, but scores of pairs after them, so that pairs are not rounded.
  void open_queries(int64_t head) {
    head_ = head;
    unpack(call_.q, first_query_, queries_, head, pairs ? R{1} : scale_, q_);
  }

  void unpack_keys(const StridedRows<T>& from, int64_t key_head, const Rows& to) const {
    unpack(from, first_key_, keys_, key_head, R{1}, to, call_.key_rows);
  }

  // scores = factor * rows of a times the transposed tile at `key`; the factor applies to pairs only.
  void multiply_across(const Unit* a, int64_t rows, const Unit* tile, int64_t key, R* scores,
                       [[maybe_unused]] R factor) const {
    const int64_t columns = padded<R>(tile_width(key));
    if constexpr (pairs) {
      multiply_pairs({scores, tile_keys, a, along_row_, 1, tile, columns, rows, units(width_), columns,
                      factor, /*accumulate=*/false, tiles_multiply_pairs_});
    } else {
      zero(scores, rows * tile_keys);
      multiply_add(scores, tile_keys, a, row_, 1, tile, columns, rows, width_, columns);
    }
  }

  // The numbers of a tile as left operands: for sums over keys, and, transposed, for sums over queries.
  struct Factors {
    const Unit *along, *down;
    int64_t along_row;
  };
  // `rounded`: memory for them, which pairs need.
  Factors factors_of(const R* tile, [[maybe_unused]] int64_t rows, [[maybe_unused]] int64_t key,
                     [[maybe_unused]] uint32_t* rounded) const {
    if constexpr (pairs) {
      uint32_t* const down = rounded + tile_queries * tile_keys / 2;
      round_to_pairs(tile, rows, tile_width(key), tile_keys, rounded, down);
      return {rounded, down, tile_keys / 2};
    } else {
      return {tile, tile, tile_keys};
    }
  }

  // `m` rows of sums += a b, where element (i, p) of a is a[i * a_row + p * a_column], and b has k units in
  // each column.
  void add_product(R* sums, const Unit* a, int64_t a_row, int64_t a_column, const Unit* b, int64_t m,
                   int64_t k) const {
    if constexpr (pairs) {
      multiply_pairs({sums, row_, a, a_row, a_column, b, row_, m, k, row_, 1, /*accumulate=*/true,
                      tiles_multiply_pairs_});
    } else {
      multiply_add(sums, row_, a, a_row, a_column, b, row_, m, k, row_);
    }
  }
  // The row of the right operand that begins with row `first`, a multiple of two.
  const Unit* below(const Rows& rows, int64_t first) const { return rows.down + units(first) * row_; }

  // kept_ = 0 or drop.scale for `rows` queries from `query` and the keys of the tile.
  void draw_dropout(int64_t query, int64_t rows, int64_t key) {
    const int64_t blocks = (tile_width(key) + 3) / 4;
    const RowCounter row = row_counter(sample_, first_place_ + query, call_.first_head + head_);
    philox_words(words_, key / 4, blocks, rows * blocks, row, call_.drop.key);
    for (int64_t i = 0; i < rows; ++i) {
      words_to_scales(words_ + i * 4 * blocks, tile_width(key), call_.drop, kept_ + i * tile_keys);
    }
  }

  bool drops() const { return call_.drop.threshold > 0; }

  void forward_tile(int64_t query) {
    const int64_t rows = rows_of_tile(query);
    R* mixed = grad_k_;
    R largest[tile_queries], total[tile_queries];
    zero(mixed, rows * row_);
    for (R& value : largest) value = -std::numeric_limits<R>::infinity();
    zero(total, tile_queries);
    const int64_t first = first_seen_by(query) / tile_keys * tile_keys, end = seen_by(query + rows - 1);
    for (int64_t key = first; key < end; key += tile_keys) {
      multiply_across(q_.along + query * along_row_, rows, across(keys_across_, key), key, scores_, scale_);
      if (drops()) draw_dropout(query, rows, key);
      for (int64_t i = 0; i < rows; ++i) {
        const R before = largest[i];
        R* row = scores_ + i * tile_keys;
        const Seen seen = seen_in_tile(query + i, key);
        if (!seen.none()) total[i] = exponentiate(row, seen, largest[i], total[i]);
        zero_around(row, seen, key);
        if (key > first && largest[i] != before)
          multiply_row(mixed + i * row_, std::exp(before - largest[i]));
        if (drops()) drop_row(row, kept_ + i * tile_keys, tile_width(key));
      }
      const Factors weights = factors_of(scores_, rows, key, rounded_scores_);
      add_product(mixed, weights.along, weights.along_row, 1, below(v_, key), rows, units(tile_width(key)));
    }
    R log_sums[tile_queries];
    const Lanes<R> d;
    for (int64_t i = 0; i < tile_queries; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(hn::Add(hn::LoadU(d, largest + i), hn::Log(d, hn::LoadU(d, total + i))), d, log_sums + i);
    }
    for (int64_t i = 0; i < rows; ++i) {
      multiply_row(mixed + i * row_, 1 / total[i]);
      call_.log_sum_exp[(first_query_ + query + i) * call_.heads + head_] = log_sums[i];
    }
    pack(mixed, rows, R{1}, {call_.out, stride()}, first_query_ + query, head_);
  }

  // Sets row = e^(row - largest) for visible keys, after raising `largest` to the row's largest score.
  // Returns the sum of all rows so far, given the sum `total` of the previous rows.
  R exponentiate(R* row, const Seen& seen, R& largest, R total) const {
    const Lanes<R> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const R before = largest;
    auto most = hn::Set(d, largest), sum = hn::Zero(d);
    const int64_t begin = seen.begin / lanes * lanes;
    const auto seen_from = [&](int64_t j) HWY_ATTR {
      const auto before_end = hn::FirstN(d, static_cast<size_t>(seen.end - j));
      return seen.begin <= j ? before_end
                             : hn::AndNot(hn::FirstN(d, static_cast<size_t>(seen.begin - j)), before_end);
    };
    for (int64_t j = begin; j < seen.end; j += lanes) {
      most = hn::Max(most, hn::IfThenElse(seen_from(j), hn::LoadU(d, row + j), most));
    }
    largest = hn::GetLane(hn::MaxOfLanes(d, most));
    for (int64_t j = begin; j < seen.end; j += lanes) {
      const auto inside = seen_from(j);
      const auto power = exp(d, hn::Sub(hn::LoadU(d, row + j), hn::Set(d, largest)));
      const auto weight = hn::IfThenElseZero(inside, power);
      sum = hn::Add(sum, weight);
      hn::StoreU(weight, d, row + j);
    }
    const R here = hn::GetLane(hn::SumOfLanes(d, sum));
    return total == 0 ? here : total * std::exp(before - largest) + here;
  }

  void drop_row(R* row, const R* kept, int64_t n) const {
    for (int64_t j = 0; j < n; ++j) row[j] *= kept[j];
  }

  // Computes the sum over keys of each weight times its gradient, which equals the dot product of the output
  // and its gradient.
  void find_deltas() {
    const Lanes<R> d;
    for (int64_t i = 0; i < queries_; ++i) {
      const T* out = call_.out + (first_query_ + i) * stride() + head_ * width_;
      const T* grad = call_.grad_out + (first_query_ + i) * stride() + head_ * width_;
      auto sum = hn::Zero(d);
      for (int64_t c = 0; c < width_; c += static_cast<int64_t>(hn::Lanes(d)))
        sum = hn::MulAdd(load_some(d, out + c, width_ - c), load_some(d, grad + c, width_ - c), sum);
      delta_[i] = hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }

  // Processes one head of queries; the first one also prepares the tile.
  void backward_tile(int64_t key, bool is_first) {
    if (is_first) {
      transpose_tile(k_.along, key, keys_across_);
      transpose_tile(v_.along, key, values_across_);
    }
    R *grad_k = grad_k_ + key * row_, *grad_v = grad_v_ + key * row_;
    for (int64_t query = 0, rows = 0; query < queries_; query += rows) {
      rows = rows_of_tile(query);
      if (seen_by(query + rows - 1) <= key || first_seen_by(query) >= key + tile_width(key)) continue;
      const int64_t first = query * along_row_;
      multiply_across(q_.along + first, rows, across(keys_across_, key), key, scores_, scale_);
      multiply_across(grad_out_.along + first, rows, across(values_across_, key), key, grad_scores_, R{1});
      if (drops()) draw_dropout(query, rows, key);
      for (int64_t i = 0; i < rows; ++i) {
        const Seen seen = seen_in_tile(query + i, key);
        differentiate_row(query, i, seen.end);
        zero_around(scores_ + i * tile_keys, seen, key);
        zero_around(grad_scores_ + i * tile_keys, seen, key);
      }
      const Factors weights = factors_of(scores_, rows, key, rounded_scores_),
                    grads = factors_of(grad_scores_, rows, key, rounded_grads_);
      add_product(grad_v, weights.down, 1, tile_keys, below(grad_out_, query), tile_width(key), units(rows));
      add_product(grad_k, grads.down, 1, tile_keys, below(q_, query), tile_width(key), units(rows));
      add_product(grad_q_ + query * row_, grads.along, grads.along_row, 1, below(k_, key), rows,
                  units(tile_width(key)));
    }
  }

  // For row i of the tile: replaces scores by the weights after dropout, and grad_scores by the gradients of
  // the scores.
  void differentiate_row(int64_t query, int64_t i, int64_t n) {
    const Lanes<R> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    R *scores = scores_ + i * tile_keys, *grads = grad_scores_ + i * tile_keys;
    const R* kept = kept_ + i * tile_keys;
    const R sum = call_.log_sum_exp[(first_query_ + query + i) * call_.heads + head_];
    const auto log_sum = hn::Set(d, sum), delta = hn::Set(d, delta_[query + i]);
    for (int64_t j = 0; j < n; j += lanes) {
      const auto weight = exp(d, hn::Sub(hn::LoadU(d, scores + j), log_sum));
      auto grad = hn::LoadU(d, grads + j), used = weight;
      if (drops()) {
        const auto factor = hn::LoadU(d, kept + j);
        grad = hn::Mul(grad, factor);
        used = hn::Mul(weight, factor);
      }
      hn::StoreU(used, d, scores + j);
      hn::StoreU(hn::Mul(weight, hn::Sub(grad, delta)), d, grads + j);
    }
  }

  const AttentionCall<T>& call_;
  const R scale_;
  const bool tiles_multiply_pairs_ = pairs && tiles_multiply_pairs();
  const PairTiles tiles_{tiles_multiply_pairs_};
  int64_t head_ = 0, sample_ = 0, first_query_ = 0, queries_ = 0, first_key_ = 0, keys_ = 0;
  int64_t first_position_ = 0, first_place_ = 0;  // of the queries, in the sequence and in the sample
  Rows q_, grad_out_, k_, v_;
  Unit *keys_across_, *values_across_;
  R *grad_q_, *delta_, *grad_k_, *grad_v_;
  R scores_[tile_queries * tile_keys], grad_scores_[tile_queries * tile_keys],
      kept_[tile_queries * tile_keys];
  static constexpr int64_t rounded_units = pairs ? tile_queries * tile_keys : 1;
  uint32_t rounded_scores_[rounded_units], rounded_grads_[rounded_units];
  uint32_t words_[tile_queries * tile_keys + spare_words];
};

template <class T, bool pairs = false>
HWY_INLINE void each_head(const AttentionCall<T>& call, const AttentionScratch<Real<T>>& scratch) {
  Head<T, pairs> one(call, scratch);
  for (int64_t b = 0; b < call.sequences; ++b) {
    for (int64_t head = 0; head < call.key_heads; ++head) {
      call.is_backward ? one.backward(b, head) : one.forward(b, head);
    }
  }
}

void attention_f32(const AttentionCall<float>& call, const AttentionScratch<float>& scratch) {
  each_head(call, scratch);
}
void attention_bf16(const AttentionCall<Bf16>& call, const AttentionScratch<float>& scratch) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (has_pair_products()) return each_head<Bf16, true>(call, scratch);
#endif
  each_head(call, scratch);
}
void attention_f64(const AttentionCall<double>& call, const AttentionScratch<double>& scratch) {
  each_head(call, scratch);
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(attention_f32);
HWY_EXPORT(attention_bf16);
HWY_EXPORT(attention_f64);

void dispatch(const AttentionCall<float>& call, const AttentionScratch<float>& scratch) {
  HWY_DYNAMIC_DISPATCH(attention_f32)(call, scratch);
}
void dispatch(const AttentionCall<Bf16>& call, const AttentionScratch<float>& scratch) {
  HWY_DYNAMIC_DISPATCH(attention_bf16)(call, scratch);
}
void dispatch(const AttentionCall<double>& call, const AttentionScratch<double>& scratch) {
  HWY_DYNAMIC_DISPATCH(attention_f64)(call, scratch);
}

template <class T>
void with_scratch(const AttentionCall<T>& call) {
  AttentionScratch<Real<T>> scratch;
  scratch.longest_queries = longest(call.query_bounds, call.sequences);
  if (scratch.longest_queries <= 1 && call.key_rows != nullptr && call.drop.threshold == 0)
    return one_query_loop(call);
  scratch.longest_keys = longest(call.key_bounds, call.sequences);
  const int64_t row = call.width + largest_vector / 4;
  std::vector<Real<T>> memory(static_cast<size_t>((4 * row + 1) * scratch.longest_queries +
                                                  7 * row * scratch.longest_keys + (3 * 64 + 4) * row));
  scratch.memory = memory.data();
  dispatch(call, scratch);
}

}  // namespace

void attention_loop(const AttentionCall<float>& call) { with_scratch(call); }
void attention_loop(const AttentionCall<Bf16>& call) { with_scratch(call); }
void attention_loop(const AttentionCall<double>& call) { with_scratch(call); }

}  // namespace stretto::kernels
#endif
