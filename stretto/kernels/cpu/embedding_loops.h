#pragma once

#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// out[row] = the sum of tables[t][ids[t][row]] over the tables, each of rows of `width` numbers.
template <class T>
struct RowSumCall {
  const T* const* tables;
  const int64_t* const* ids;
  int64_t count;  // of tables
  int64_t rows, width;
  T* out;
};
void row_sum_loop(const RowSumCall<float>& call);
void row_sum_loop(const RowSumCall<Bf16>& call);
void row_sum_loop(const RowSumCall<double>& call);

// sums[ids[row]] += grad[row], in the order of rows.
template <class T>
struct RowAddCall {
  const T* grad;
  const int64_t* ids;
  int64_t rows, width;
  Real<T>* sums;
};
void row_add_loop(const RowAddCall<float>& call);
void row_add_loop(const RowAddCall<Bf16>& call);
void row_add_loop(const RowAddCall<double>& call);

}  // namespace stretto::kernels
