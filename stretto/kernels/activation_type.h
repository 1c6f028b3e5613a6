#pragma once

namespace stretto::kernels {

// The activation functions that have kernels. gelu_tanh is the approximation of gelu by tanh.
enum class Activation { gelu, gelu_tanh, relu, silu, tanh, sigmoid };

}  // namespace stretto::kernels
