#pragma once

namespace stretto::kernels {

// The activation functions that have kernels. gelu_tanh: its approximation by tanh.
enum class Curve { gelu, gelu_tanh, relu, silu, tanh, sigmoid };

}  // namespace stretto::kernels
