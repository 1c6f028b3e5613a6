// Helpers of the loops. Included once per target (Highway's foreach_target.h).
#if defined(STRETTO_KERNELS_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STRETTO_KERNELS_SIMD_INL_H
#undef STRETTO_KERNELS_SIMD_INL_H
#else
#define STRETTO_KERNELS_SIMD_INL_H
#endif

#include <cmath>
#include <cstring>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "stretto/base/philox.h"
#include "stretto/kernels/cpu/dropout_loops.h"
#include "stretto/kernels/cpu/numbers.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class R>
using Lanes = hn::ScalableTag<R>;

template <class R>
HWY_INLINE int64_t padded(int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Lanes<R>()));
  return (n + lanes - 1) / lanes * lanes;
}

// --- numbers in memory

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Bf16* from) {
  const hn::Rebind<uint16_t, D> half;
  const hn::RebindToUnsigned<D> bits;
  const auto words = hn::PromoteTo(bits, hn::LoadU(half, reinterpret_cast<const uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(words));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> values, hn::TFromD<D>* to) {
  hn::StoreU(values, d, to);
}
// Rounds to nearest, ties to even, like ATen.
template <class D>
HWY_INLINE void store(D /*fp32*/, hn::Vec<D> values, Bf16* to) {
  const hn::Rebind<uint16_t, D> half;
  const hn::RebindToUnsigned<D> bits;
  const auto words = hn::BitCast(bits, values);
  const auto odd = hn::And(hn::ShiftRight<16>(words), hn::Set(bits, 1));
  const auto rounded = hn::Add(words, hn::Add(odd, hn::Set(bits, 0x7fff)));
  const auto quiet_nan = hn::Set(bits, 0x7fc00000);
  const auto chosen = hn::IfThenElse(hn::RebindMask(bits, hn::Eq(values, values)), rounded, quiet_nan);
  hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(chosen)), half, reinterpret_cast<uint16_t*>(to));
}

HWY_INLINE float number(float value) { return value; }
HWY_INLINE double number(double value) { return value; }
HWY_INLINE float number(Bf16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// No templates of the standard library: the linker could keep the instance compiled for a newer processor for
// the whole program.
template <class R>
HWY_INLINE void zero(R* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = 0;
}

// Loads up to a vector of the next `left` numbers of a row, padded with zeros.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, int64_t left) {
  if (left >= static_cast<int64_t>(hn::Lanes(d))) return load(d, from);
  T some[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
  for (int64_t i = 0; i < left; ++i) some[i] = from[i];
  return load(d, some);
}

template <class D, class T>
HWY_INLINE void store_some(D d, hn::Vec<D> values, T* to, int64_t left) {
  if (left >= static_cast<int64_t>(hn::Lanes(d))) return store(d, values, to);
  T some[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  store(d, values, some);
  for (int64_t i = 0; i < left; ++i) to[i] = some[i];
}

// Convert a whole row to the type of the computation, padded with zeros, and back.
template <class T>
HWY_INLINE void load_row(const T* from, int64_t n, Real<T>* to) {
  const Lanes<Real<T>> d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(load_some(d, from + i, n - i), d, to + i);
}
template <class T>
HWY_INLINE void store_row(const Real<T>* from, int64_t n, T* to) {
  const Lanes<Real<T>> d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
    store_some(d, hn::LoadU(d, from + i), to + i, n - i);
}

// --- elementary functions

// e^x for x up to 88, 0 below -87.3; NaN stays NaN. In fp32, 2^n times a polynomial of the remainder of x,
// fitted to a relative error of 5e-9.
template <class D>
HWY_INLINE hn::Vec<D> exp(D d, hn::Vec<D> x) {
  using R = hn::TFromD<D>;
  if constexpr (sizeof(R) == sizeof(double)) {
    return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
  } else {
    const hn::RebindToSigned<D> whole;
    const auto number = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<R>(value)); };
    const auto n = hn::Round(hn::Mul(x, number(1.4426950408889634)));
    // ln 2 in two parts; the product of the first part and n is exact.
    const auto rest = hn::NegMulAdd(n, number(-2.1219444005e-4), hn::NegMulAdd(n, number(0.693359375), x));
    auto sum = number(1.395072034e-03);
    sum = hn::MulAdd(sum, rest, number(8.369025406e-03));
    sum = hn::MulAdd(sum, rest, number(4.166620236e-02));
    sum = hn::MulAdd(sum, rest, number(1.666651771e-01));
    sum = hn::MulAdd(sum, rest, number(5.000000096e-01));
    sum = hn::MulAdd(sum, hn::Mul(rest, rest), hn::Add(rest, number(1)));
    const auto exponent = hn::Add(hn::ConvertTo(whole, n), hn::Set(whole, 127));
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
    return hn::IfThenElse(hn::Lt(x, number(-87.3)), hn::Zero(d), hn::Mul(sum, power));
  }
}

// 1 / x for finite x from 1 on, to two units in the last place. Division of 512-bit vectors takes 16 cycles.
template <class D>
HWY_INLINE hn::Vec<D> reciprocal(D d, hn::Vec<D> x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    const auto close = hn::ApproximateReciprocal(x);
    return hn::Mul(close, hn::NegMulAdd(x, close, hn::Set(d, 2)));
  }
#endif
  return hn::Div(hn::Set(d, 1), x);
}

template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1);
  const auto bounded = hn::Min(hn::Neg(x), hn::Set(d, 88));  // beyond, the sigmoid is 0 in fp32
  return hn::IfThenElse(hn::Eq(x, x), reciprocal(d, hn::Add(one, exp(d, bounded))), x);
}

// The normal distribution's density and cumulative distribution. In fp32 the tail is density times a
// polynomial in t = 1 / (1 + 0.23 |x|), of the form of Abramowitz & Stegun 26.2.17, fitted to a relative
// error of 5e-8.
template <class D>
HWY_INLINE void normal(D d, hn::Vec<D> x, hn::Vec<D>& density, hn::Vec<D>& cumulative) {
  using R = hn::TFromD<D>;
  const auto number = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<R>(value)); };
  const auto bell = exp(d, hn::Mul(hn::Mul(x, x), number(-0.5)));
  density = hn::Mul(bell, number(0.3989422804014327));
  if constexpr (sizeof(R) == sizeof(double)) {
    double values[HWY_MAX_BYTES / sizeof(double)];
    hn::StoreU(x, d, values);
    for (size_t i = 0; i < hn::Lanes(d); ++i) values[i] = 0.5 * std::erfc(values[i] * -0.70710678118654752);
    cumulative = hn::LoadU(d, values);
    return;
  }
  const auto one = number(1);
  const auto bounded = hn::Min(hn::Abs(x), number(30));  // where the density is 0
  const auto t = reciprocal(d, hn::MulAdd(bounded, number(0.23), one));
  auto tail = number(-7.84323886e-02);
  tail = hn::MulAdd(tail, t, number(2.90235698e-01));
  tail = hn::MulAdd(tail, t, number(-2.77738780e-01));
  tail = hn::MulAdd(tail, t, number(3.01001936e-01));
  tail = hn::MulAdd(tail, t, number(-3.25725377e-02));
  tail = hn::MulAdd(tail, t, number(1.19354315e-01));
  tail = hn::MulAdd(tail, t, number(8.58074576e-02));
  tail = hn::MulAdd(tail, t, number(9.23715755e-02));
  tail = hn::Mul(hn::MulAdd(tail, t, number(-2.73123551e-05)), bell);
  cumulative = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

// --- dropout

// philox() of base/philox.h on several counters (block, place, sample, ...) at once: counter i of `count`
// gives words[4 * i ...]. Blocks go up from first_block, `blocks` per row, and places from row.place.
constexpr int philox_vectors = 2;
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void philox_words(uint32_t* words, int64_t first_block, int64_t blocks, int64_t count,
                             RowCounter row, uint64_t key) {
  for (int64_t i = 0; i < count; ++i) {
    const auto four =
        philox({static_cast<uint32_t>(first_block + i % blocks),
                static_cast<uint32_t>(row.place + i / blocks), row.sample_low, row.sample_high_and_stream},
               key);
    for (int w = 0; w < 4; ++w) words[4 * i + w] = four[static_cast<size_t>(w)];
  }
}
#else
// Processes several vectors of counters at a time: each round depends on the previous one, so that
// independent vectors hide its latency.
HWY_INLINE void philox_words(uint32_t* words, int64_t first_block, int64_t blocks, int64_t count,
                             RowCounter row, uint64_t key) {
  // A 32-bit word is in the lower half of each lane; the upper half is never read.
  const hn::ScalableTag<uint64_t> wide;
  using V = hn::Vec<decltype(wide)>;
  const hn::Repartition<uint32_t, decltype(wide)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  const auto multiply = [&](V a, V b)
                            HWY_ATTR { return hn::MulEven(hn::BitCast(narrow, a), hn::BitCast(narrow, b)); };
  const V multiplier0 = hn::Set(wide, 0xD2511F53), multiplier1 = hn::Set(wide, 0xCD9E8D57);
  const V low_half = hn::Set(wide, 0xffffffff);
  constexpr int rounds = 10;
  V keys0[rounds], keys1[rounds];
  for (uint32_t round = 0; round < rounds; ++round) {
    keys0[round] = hn::Set(wide, static_cast<uint32_t>(key) + round * 0x9E3779B9u);
    keys1[round] = hn::Set(wide, static_cast<uint32_t>(key >> 32) + round * 0xBB67AE85u);
  }
  const bool one_row = count <= blocks;
  int64_t block = 0;
  uint32_t place = row.place;
  for (int64_t first = 0; first < count; first += philox_vectors * lanes) {
    uint64_t block_of[philox_vectors * HWY_MAX_BYTES / 8], place_of[philox_vectors * HWY_MAX_BYTES / 8];
    if (!one_row) {
      for (int64_t i = 0; i < philox_vectors * lanes; ++i) {
        block_of[i] = static_cast<uint32_t>(first_block + block);
        place_of[i] = place;
        if (++block == blocks) block = 0, ++place;
      }
    }
    V c0[philox_vectors], c1[philox_vectors], c2[philox_vectors], c3[philox_vectors];
    for (int v = 0; v < philox_vectors; ++v) {
      c0[v] = one_row ? hn::Iota(wide, static_cast<uint64_t>(first_block + first + v * lanes))
                      : hn::LoadU(wide, block_of + v * lanes);
      c1[v] = one_row ? hn::Set(wide, place) : hn::LoadU(wide, place_of + v * lanes);
      c2[v] = hn::Set(wide, row.sample_low);
      c3[v] = hn::Set(wide, row.sample_high_and_stream);
    }
    for (int round = 0; round < rounds; ++round) {
      for (int v = 0; v < philox_vectors; ++v) {
        const V product0 = multiply(c0[v], multiplier0), product1 = multiply(c2[v], multiplier1);
        c0[v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1[v]), keys0[round]);
        c2[v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3[v]), keys1[round]);
        c1[v] = product1;
        c3[v] = product0;
      }
    }
    for (int v = 0; v < philox_vectors; ++v) {
      const V words01 = hn::Or(hn::And(c0[v], low_half), hn::ShiftLeft<32>(c1[v]));
      const V words23 = hn::Or(hn::And(c2[v], low_half), hn::ShiftLeft<32>(c3[v]));
      hn::StoreInterleaved2(words01, words23, wide,
                            reinterpret_cast<uint64_t*>(words + 4 * (first + v * lanes)));
    }
  }
}
#endif

// The number of words that philox_words may write beyond its last counter.
constexpr int64_t spare_words = philox_vectors * 4 * HWY_MAX_BYTES / 8;

template <class R>
HWY_INLINE void words_to_scales(const uint32_t* words, int64_t n, const Drop& drop, R* scales) {
  const R scale = static_cast<R>(drop.scale);
  int64_t i = 0;
  if constexpr (sizeof(R) == sizeof(uint32_t)) {
    const Lanes<R> d;
    const hn::RebindToUnsigned<Lanes<R>> bits;
    const auto threshold = hn::Set(bits, drop.threshold);
    for (const auto lanes = static_cast<int64_t>(hn::Lanes(d)); i + lanes <= n; i += lanes) {
      const auto dropped = hn::RebindMask(d, hn::Lt(hn::LoadU(bits, words + i), threshold));
      hn::StoreU(hn::IfThenZeroElse(dropped, hn::Set(d, scale)), d, scales + i);
    }
  }
  for (; i < n; ++i) scales[i] = words[i] >= drop.threshold ? scale : R{0};
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
