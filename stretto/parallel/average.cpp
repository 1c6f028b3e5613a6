#include "stretto/parallel/average.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::parallel {

WeightAverage::WeightAverage(const AverageOptions& options, const Tensor& master,
                             std::vector<optim::ParameterPiece> pieces)
    : options_(options), master_(master), average_(master.clone()), pieces_(std::move(pieces)) {
  if (!(options.decay >= 0 && options.decay < 1))
    throw ConfigError("the decay of the averaged weights is {}; expected at least 0 and below 1",
                      options.decay);
}

void WeightAverage::update(int64_t step) {
  at::NoGradGuard no_grad;
  const auto n = static_cast<double>(step);
  const double decay = options_.warmup ? std::min(options_.decay, (1 + n) / (10 + n)) : options_.decay;
  average_.lerp_(master_, 1 - decay);
}

void WeightAverage::swap() {
  at::NoGradGuard no_grad;
  constexpr int64_t at_once = 1 << 18;  // elements, so that no copy of the model is needed
  for (int64_t begin = 0; begin < master_.numel(); begin += at_once) {
    const int64_t end = std::min(master_.numel(), begin + at_once);
    const Tensor master = master_.slice(0, begin, end), average = average_.slice(0, begin, end),
                 kept = master.clone();
    master.copy_(average);
    average.copy_(kept);
  }
}

void WeightAverage::add_state(State& state, const std::string& prefix) const {
  for (const optim::ParameterPiece& piece : pieces_) {
    state.tensors.push_back(
        optim::piece_entry(prefix + "." + piece.name, piece, average_.slice(0, piece.begin, piece.end)));
  }
}

}  // namespace stretto::parallel
