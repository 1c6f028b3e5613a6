#pragma once

#include <vector>

#include "stretto/optim/optimizer.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/state.h"

namespace stretto::parallel {

struct AverageOptions {
  double decay = 0.999;  // in [0, 1)
  bool warmup = false;   // min(decay, (1 + step) / (10 + step))
};

// The exponential moving average of the master weights that this rank steps. It takes as much memory as they
// do.
class WeightAverage {
 public:
  // Begins with the values of `master`, which must outlive it.
  WeightAverage(const AverageOptions& options, const Tensor& master,
                std::vector<optim::ParameterPiece> pieces);

  // average = decay x average + (1 - decay) x master, after step `step` (1 is the first).
  void update(int64_t step);
  // Exchanges the average and the master weights.
  void swap();

  // Adds entries "<prefix>.<parameter>", which refer to live memory.
  void add_state(State& state, const std::string& prefix) const;
  int64_t bytes() const { return static_cast<int64_t>(average_.nbytes()); }

 private:
  AverageOptions options_;
  Tensor master_;   // [N] the range that this rank owns
  Tensor average_;  // [N] of master's dtype
  std::vector<optim::ParameterPiece> pieces_;
};

}  // namespace stretto::parallel
