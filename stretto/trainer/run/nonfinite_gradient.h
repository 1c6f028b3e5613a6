#pragma once

#include <string>
#include <utility>

#include "stretto/base/error.h"

namespace stretto::trainer {

// In manual optimization: the gradients of a step, summed over the ranks, are not finite although the losses
// are. TrainingRun finds the ranks that caused it.
class NonfiniteGradient : public Error {
 public:
  // `place`: of the message, up to the ranks; `rest`: what follows them. `call`: the number of the call of
  // step() in its micro-batch.
  NonfiniteGradient(std::string place, std::string rest, size_t call)
      : Error("{}{}", place, rest), place_(std::move(place)), rest_(std::move(rest)), call_(call) {}

  size_t call() const { return call_; }
  Error with_ranks(const std::string& ranks) const { return Error("{}{}{}", place_, ranks, rest_); }

 private:
  std::string place_, rest_;
  size_t call_;
};

}  // namespace stretto::trainer
