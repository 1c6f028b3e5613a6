#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stretto::trainer {

// The duration of an evaluation and what was evaluated: samples of all sets, and steps of each rank.
struct EvaluationSpeed {
  double seconds = 0;
  int64_t samples = 0, steps = 0;

  // The values of its record, with the names of transformers' Trainer.
  std::vector<std::pair<std::string, double>> values() const {
    const auto per_second = [&](int64_t count) {
      return seconds > 0 ? static_cast<double>(count) / seconds : 0;
    };
    return {{"runtime", seconds},
            {"samples_per_second", per_second(samples)},
            {"steps_per_second", per_second(steps)}};
  }
};

}  // namespace stretto::trainer
