#pragma once

#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace stretto {

using at::Tensor;

// The precision of a run. `fp32` and `fp64` use that dtype throughout; `bf16` computes in bfloat16 on a copy of fp32
// master weights, with fp32 gradients and reductions.
enum class Precision { fp32, bf16, fp64 };

// "fp32" | "bf16" | "fp64". Throws ConfigError.
Precision parse_precision(const std::string& name);

at::ScalarType compute_dtype(Precision precision);
at::ScalarType master_dtype(
    Precision precision);  // of master weights, gradients, optimizer state and reductions

// "[2, 3] float": for messages.
std::string describe(const Tensor& tensor);
std::string describe(at::IntArrayRef shape);

}  // namespace stretto
