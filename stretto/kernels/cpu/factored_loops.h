#pragma once

#include <cstdint>

namespace stretto::kernels {

// A parameter p [rows, columns] and its gradient g, which is multiplied by `scale`.
template <class R>
struct FactoredMatrix {
  R *p, *g;
  R scale;
  int64_t rows, columns;
};

// Adafactor's passes over a matrix. The first writes the sums of the squares of g, per row to row_sums [rows]
// and per column to column_sums [columns], and returns the sum of the squares of p. `scratch`: [columns].
double factored_squares_loop(const FactoredMatrix<float>& matrix, float* row_sums, double* column_sums,
                             float* scratch);
double factored_squares_loop(const FactoredMatrix<double>& matrix, double* row_sums, double* column_sums,
                             double* scratch);

// The sum of squares of the update u = g / sqrt(max(row[i] * column[j], least)).
double factored_norm_loop(const FactoredMatrix<float>& matrix, const float* row, const float* column,
                          float least);
double factored_norm_loop(const FactoredMatrix<double>& matrix, const double* row, const double* column,
                          double least);

// p = decay * p - size * u; g = 0
void factored_step_loop(const FactoredMatrix<float>& matrix, const float* row, const float* column,
                        float least, float decay, float size);
void factored_step_loop(const FactoredMatrix<double>& matrix, const double* row, const double* column,
                        double least, double decay, double size);

}  // namespace stretto::kernels
