#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "stretto/base/precision.h"

namespace stretto {

// Library of matrix products on CPU; automatic: the fastest for the shapes of the model, by measurement.
enum class Products { automatic, aten, onednn, mkl, stretto };
constexpr auto names_of(Products) {
  return std::to_array<std::string_view>({"auto", "aten", "onednn", "mkl", "stretto"});
}

// How a model is computed.
struct ComputeOptions {
  std::string strategy = "ddp";  // a row of strategy/sharding.h
  Precision precision = Precision::fp32;
  Products products = Products::automatic;
};

// The same as a user writes it, in a recipe or in LiteOptions.
struct ComputeNames {
  std::string strategy = "ddp";    // of parse_strategy()
  std::string precision = "fp32";  // of parse_precision()
  std::string products = "auto";
};

// What messages say of an option, by the name of its member: "strategy". The default says the name alone.
struct OptionLabels {
  using Text = std::function<std::string(const std::string& option)>;
  Text label = [](const std::string& option) {
    return option + ": ";
  };  // begins a message: "r.yaml:4: training.strategy: "
  Text mention = [](const std::string& option) { return option; };  // within one
  std::function<bool(const std::string& option)> given = [](const std::string&) {
    return true;
  };  // whether it was set, or has its default
};

// Reads the names. The strategy is that of `stretto launch --strategy` if there is one, and sets the precision if it
// names one. Throws ConfigError for unknown names, for a strategy that was given and contradicts the launcher's, and for a
// precision that was given and contradicts the strategy's.
ComputeOptions parse_compute_options(const ComputeNames& names, const OptionLabels& labels);

}  // namespace stretto
