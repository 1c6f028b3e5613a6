#pragma once

#include <optional>
#include <string>

namespace stretto {

// Settings for the parameters whose name in the root module matches `pattern`: "encoder.layer.0.*", where *
// stands for any text and ? for one character.
struct ParameterGroup {
  std::string pattern;
  double lr_factor = 1;                   // multiplies the schedule's learning rate; at least 0
  std::optional<bool> weight_decay = {};  // unset: applies to all but biases and weights of norms
  bool frozen = false;                    // sets requires_grad = false; no memory for a gradient
};

}  // namespace stretto
