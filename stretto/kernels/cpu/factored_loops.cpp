#include "stretto/kernels/cpu/factored_loops.h"

#include <cmath>

#include "stretto/kernels/cpu/half.h"
#include "stretto/kernels/cpu/multiarch.h"

namespace stretto::kernels {
namespace {

constexpr int64_t lanes = 16;  // independent sums, which the compiler keeps in vectors

// Inlined into the functions below: target_clones does not apply to templates.

// The sum of `term(j)` for j in [0, n).
template <class R, class Term>
STRETTO_INLINE double sum_of(int64_t n, const Term& term) {
  R sums[lanes] = {};
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) sums[lane] += term(j + lane);
  }
  double sum = 0;
  for (; j < n; ++j) sum += static_cast<double>(term(j));
  for (const R lane : sums) sum += static_cast<double>(lane);
  return sum;
}

template <class R>
STRETTO_INLINE double squares_body(const FactoredMatrix<R>& matrix, R* row_sums, double* column_sums,
                                   R* scratch) {
  constexpr int64_t rows_per_flush = 64;  // rows that a sum in single precision may add
  const R scale = matrix.scale;
  const int64_t n = matrix.columns;
  double of_parameters = 0;
  for (int64_t j = 0; j < n; ++j) scratch[j] = 0;
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const R* __restrict g = matrix.g + i * n;
    const R* __restrict p = matrix.p + i * n;
    R* __restrict to = scratch;
    row_sums[i] = static_cast<R>(sum_of<R>(n, [&](int64_t j) { return g[j] * scale * (g[j] * scale); }));
    of_parameters += sum_of<R>(n, [&](int64_t j) { return p[j] * p[j]; });
    for (int64_t j = 0; j < n; ++j) to[j] += g[j] * scale * (g[j] * scale);
    if (i % rows_per_flush != rows_per_flush - 1 && i + 1 < matrix.rows) continue;
    for (int64_t j = 0; j < n; ++j) {
      column_sums[j] += static_cast<double>(to[j]);
      to[j] = 0;
    }
  }
  return of_parameters;
}

template <class R>
STRETTO_INLINE double norm_body(const FactoredMatrix<R>& matrix, const R* row, const R* column, R least) {
  double sum = 0;
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const R* __restrict g = matrix.g + i * matrix.columns;
    sum += sum_of<R>(matrix.columns, [&](int64_t j) {
      const R grad = g[j] * matrix.scale, product = row[i] * column[j];
      return grad * grad / (product > least ? product : least);
    });
  }
  return sum;
}

template <class R>
STRETTO_INLINE void step_body(const FactoredMatrix<R>& matrix, const R* row, const R* __restrict column,
                              R least, R decay, R size) {
  for (int64_t i = 0; i < matrix.rows; ++i) {
    R* __restrict g = matrix.g + i * matrix.columns;
    R* __restrict p = matrix.p + i * matrix.columns;
    const R of_row = row[i], scale = matrix.scale;
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const R product = of_row * column[j];
      p[j] = decay * p[j] - size * (g[j] * scale) / std::sqrt(product > least ? product : least);
      g[j] = 0;
    }
  }
}

}  // namespace

STRETTO_MULTIARCH double factored_squares_loop(const FactoredMatrix<float>& matrix, float* row_sums,
                                               double* column_sums, float* scratch) {
  return squares_body(matrix, row_sums, column_sums, scratch);
}
STRETTO_MULTIARCH double factored_squares_loop(const FactoredMatrix<double>& matrix, double* row_sums,
                                               double* column_sums, double* scratch) {
  return squares_body(matrix, row_sums, column_sums, scratch);
}

STRETTO_MULTIARCH double factored_norm_loop(const FactoredMatrix<float>& matrix, const float* row,
                                            const float* column, float least) {
  return norm_body(matrix, row, column, least);
}
STRETTO_MULTIARCH double factored_norm_loop(const FactoredMatrix<double>& matrix, const double* row,
                                            const double* column, double least) {
  return norm_body(matrix, row, column, least);
}

STRETTO_MULTIARCH void factored_step_loop(const FactoredMatrix<float>& matrix, const float* row,
                                          const float* column, float least, float decay, float size) {
  step_body(matrix, row, column, least, decay, size);
}
STRETTO_MULTIARCH void factored_step_loop(const FactoredMatrix<double>& matrix, const double* row,
                                          const double* column, double least, double decay, double size) {
  step_body(matrix, row, column, least, decay, size);
}

}  // namespace stretto::kernels
