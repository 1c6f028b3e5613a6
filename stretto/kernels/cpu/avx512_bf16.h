#pragma once

// Marks functions that use the intrinsics of AVX-512 and AVX512-BF16 (immintrin.h): a translation unit that
// is compiled for any x86 processor may have them, and calls them only where has_pair_products() or
// has_matrix_product() is true.
#define STRETTO_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define STRETTO_AVX512_INLINE \
  inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512bf16")))
