#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "stretto/kernels/matmul/speed.h"

namespace stretto::kernels {

// `count` linear maps from `in` to `out` features.
struct LinearMaps {
  int64_t out = 0, in = 0, count = 1;
  bool transposed = false;  // the weights are [in, out], not [out, in]
};

// Times one matmul with each usable library, including aten.
using MatmulTimer = std::function<std::vector<MatmulTime>(const MatmulShape&)>;

struct MeasuredChoice {
  MatmulChoice choice;
  double speedup = 1;      // of all matmuls, relative to aten
  bool is_certain = true;  // whether measurements agreed; if not, another process probably used the same core
};

// The fastest library for each role of the matmuls of `maps` with `rows` rows. All matmuls are timed in
// rounds until three successive rounds make the same choice, in at most eight rounds; otherwise the shortest
// times decide. No round begins after five seconds. stretto's own matmuls are preferred if usable, else
// aten's, unless another library takes over 3 % less time: smaller differences are noise, which would
// make runs differ, and oneDNN takes memory and time for each shape of a batch. `time`: time_matmul, or a
// function of a test. REQUIRES: maps is not empty.
MeasuredChoice choose_by_time(const std::vector<LinearMaps>& maps, at::ScalarType dtype, int64_t rows,
                              const MatmulTimer& time = {});

// Seconds that the forward matmul of a map takes with a number of rows, measured once.
struct FewRowsTimes {
  double library = 0;
  double vectors = 0, tiles = std::numeric_limits<double>::infinity();  // by kernel; infinite: not usable
};
using FewRowsTimer = std::function<FewRowsTimes(int64_t rows)>;

struct FewRowsChoice {
  int64_t rows = 0;
  FewRowsKernel kernel = FewRowsKernel::vectors;
  bool is_certain = true;  // whether measurements agreed
};

// The largest of 8, 4, 2 and 1 rows with which a kernel computes the forward matmul of `map` at least as fast
// as `library`, and the faster kernel with so many; 0 if there is none. Vectors are preferred, as libraries
// are by choose_by_time. Each number of rows is timed in rounds, as by
// choose_by_time; a round takes as long as to read 128 MB. `time`: a test's.
FewRowsChoice most_rows_for_kernel(const LinearMaps& map, at::ScalarType dtype, MatmulLibrary library,
                                   const FewRowsTimer& time = {});

}  // namespace stretto::kernels
