#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto {

// While it lives, matrix products, convolutions and the like of this thread are computed in `dtype` on `device`, whatever
// type their inputs have (torch.autocast; libtorch's autocast_mode.h lists which operations). May be nested.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType old_dtype_;
};

// Autocast keeps casts of parameters; call this when they have changed while a guard lives.
void forget_casts();

}  // namespace stretto
