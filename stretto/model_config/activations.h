#pragma once

#include <array>
#include <string_view>

namespace stretto {

// The activation functions that models have, by their names in config.json (nn::activation()).
inline constexpr std::array<std::string_view, 8> activation_names = {
    "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish", "tanh", "sigmoid"};

}  // namespace stretto
