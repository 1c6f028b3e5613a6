// Rows of a head of attention. Included once per target (Highway's foreach_target.h).
#if defined(STRETTO_KERNELS_HEAD_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STRETTO_KERNELS_HEAD_ROWS_INL_H
#undef STRETTO_KERNELS_HEAD_ROWS_INL_H
#else
#define STRETTO_KERNELS_HEAD_ROWS_INL_H
#endif

#include "stretto/kernels/cpu/attention_loops.h"
#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

// What the instructions of matmuls multiply: a number, or a pair of bf16 numbers.
template <class R, bool pairs>
struct UnitOf {
  using Type = R;
};
template <class R>
struct UnitOf<R, true> {
  using Type = uint32_t;
};

// The rows of one head in the memory of a computation, padded to whole vectors: converted to the computed
// type, or, for `pairs`, as pairs of bf16 numbers (pair_products.h).
template <class T, bool pairs>
class HeadRows {
 protected:
  using R = Real<T>;
  using Unit = typename UnitOf<R, pairs>::Type;

  // Rows of queries or keys. Units of `along` have numbers of one row: for sums over the columns. Units of
  // `down` have numbers of one column: for sums over the rows. Without pairs they are the same.
  struct Rows {
    Unit *along, *down;
  };
  static int64_t units(int64_t numbers) { return pairs ? (numbers + 1) / 2 : numbers; }

  explicit HeadRows(int64_t width)
      : width_(width), row_(padded<R>(width)), along_row_(padded<R>(units(width))) {}

  // `listed`: the row of each row, or null.
  void unpack(const StridedRows<T>& from, int64_t first_row, int64_t rows, int64_t head, R factor,
              const Rows& to, const int64_t* listed = nullptr) const {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = listed == nullptr ? first_row + i : listed[first_row + i];
      const T* numbers = from.memory + row * from.stride + head * width_;
      if (listed == nullptr) prefetch_row(numbers + rows_ahead * from.stride);
      if constexpr (pairs) {
        copy_row(numbers, to.along + i * along_row_);
      } else {
        load_row(numbers, width_, to.along + i * row_);
        if (factor != R{1}) multiply_row(to.along + i * row_, factor);
      }
    }
    if constexpr (pairs) pair_rows(to, rows);
  }

  void pack(R* from, int64_t rows, R factor, const StridedRows<T>& to, int64_t first_row,
            int64_t head) const {
    for (int64_t i = 0; i < rows; ++i) {
      if (factor != R{1}) multiply_row(from + i * row_, factor);
      store_row(from + i * row_, width_, to.memory + (first_row + i) * to.stride + head * width_);
    }
  }

  void multiply_row(R* row, R factor) const {
    for (int64_t c = 0; c < row_; ++c) row[c] *= factor;
  }

  // Transposes `count` rows of Rows::along, into rows of padded(count) units.
  void transpose(const Unit* from, int64_t count, Unit* to) const {
    const int64_t columns = padded<R>(count), width = units(width_);
    int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(Unit) == 4) {
      for (; j + 4 <= count; j += 4) {
        int64_t c = 0;
        for (; c + 4 <= width; c += 4)
          transpose_four(from + j * along_row_ + c, to + c * columns + j, columns);
        for (; c < width; ++c) {
          for (int64_t i = j; i < j + 4; ++i) to[c * columns + i] = from[i * along_row_ + c];
        }
      }
    }
#endif
    for (; j < columns; ++j) {
      for (int64_t c = 0; c < width; ++c)
        to[c * columns + j] = j < count ? from[j * along_row_ + c] : Unit{0};
    }
  }

  const int64_t width_, row_, along_row_;  // along_row_: of Rows::along

 private:
  // Rows of a head are far apart, which the processor does not foresee.
  static constexpr int64_t rows_ahead = 8;
  void prefetch_row(const T* row) const {
    for (int64_t c = 0; c < width_; c += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(row + c);
  }

  void copy_row(const Bf16* from, uint32_t* to) const {
    const Lanes<uint16_t> d;
    for (int64_t c = 0; c < 2 * along_row_; c += static_cast<int64_t>(hn::Lanes(d))) {
      const auto inside = hn::FirstN(d, static_cast<size_t>(HWY_MAX(int64_t{0}, width_ - c)));
      hn::StoreU(hn::MaskedLoad(inside, d, reinterpret_cast<const uint16_t*>(from) + c), d,
                 reinterpret_cast<uint16_t*>(to) + c);
    }
  }

  // Pairs neighbours in columns.
  void pair_rows(const Rows& rows, int64_t count) const {
    const Lanes<uint32_t> d;
    const hn::Rebind<uint16_t, Lanes<uint32_t>> half;
    for (int64_t i = 0; i < count; i += 2) {
      const auto* const first = reinterpret_cast<const uint16_t*>(rows.along + i * along_row_);
      for (int64_t c = 0; c < row_; c += static_cast<int64_t>(hn::Lanes(d))) {
        auto pair = hn::PromoteTo(d, hn::LoadU(half, first + c));
        if (i + 1 < count)
          pair =
              hn::Or(pair, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, first + 2 * along_row_ + c))));
        hn::StoreU(pair, d, rows.down + i / 2 * row_ + c);
      }
    }
  }

#if HWY_TARGET != HWY_SCALAR
  // Transposes a block of four by four.
  void transpose_four(const Unit* from, Unit* to, int64_t columns) const {
    const hn::FixedTag<Unit, 4> d;
    const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + along_row_);
    const auto r2 = hn::LoadU(d, from + 2 * along_row_), r3 = hn::LoadU(d, from + 3 * along_row_);
    const auto low02 = hn::InterleaveLower(d, r0, r2), high02 = hn::InterleaveUpper(d, r0, r2);
    const auto low13 = hn::InterleaveLower(d, r1, r3), high13 = hn::InterleaveUpper(d, r1, r3);
    hn::StoreU(hn::InterleaveLower(d, low02, low13), d, to);
    hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, to + columns);
    hn::StoreU(hn::InterleaveLower(d, high02, high13), d, to + 2 * columns);
    hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, to + 3 * columns);
  }
#endif
};

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
