#pragma once

#include <functional>
#include <vector>

#include "stretto/kernels/matmul/speed.h"

namespace stretto::kernels {

// `count` linear maps from `in` to `out` features.
struct LinearMaps {
  int64_t out = 0, in = 0, count = 1;
};

// Times one product by each usable library, aten among them.
using MatmulTimer = std::function<std::vector<MatmulTime>(const MatmulShape&)>;

struct MeasuredChoice {
  MatmulChoice choice;
  double speedup = 1;      // of all products, compared with aten
  bool is_certain = true;  // whether measurements agreed; if not, another process probably used the same core
};

// The fastest library for each role of the products of `maps` with `rows` rows. All products are timed in rounds until the
// choices of three successive rounds are equal, in at most eight rounds; if no three are, the shortest times decide. stretto's
// own products are chosen where they are usable, else aten's, unless another library takes at least 7 % less time: differences
// below that are noise, by which runs would differ, and oneDNN's take memory and time for each shape of a batch.
// `time`: time_matmul, or what a test injects. REQUIRES: maps is not empty.
MeasuredChoice choose_by_time(const std::vector<LinearMaps>& maps, at::ScalarType dtype, int64_t rows,
                              const MatmulTimer& time = {});

}  // namespace stretto::kernels
