#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto {

// Like torch.autocast: during the lifetime of the guard, this thread computes matmuls, convolutions and
// similar operations on `device` in `dtype` (libtorch's autocast_mode.h lists them). Guards may be nested.
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

// Clears autocast's cache of cast parameters. Call it after parameters have changed within the lifetime of a
// guard.
void forget_casts();

}  // namespace stretto
