#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "stretto/base/precision.h"

namespace stretto {

// The matmul library on CPU. `automatic` measures the shapes of the model and selects the fastest.
enum class Products { automatic, aten, onednn, mkl, stretto };
constexpr auto names_of(Products) {
  return std::to_array<std::string_view>({"auto", "aten", "onednn", "mkl", "stretto"});
}

// How a model is computed.
struct ComputeOptions {
  std::string strategy = "ddp";  // a row of strategy/sharding.h
  // The strategy's name offloads to the memory of the host: see Strategy. Then only CPU ranks can compute.
  bool in_host_memory = false;
  Precision precision = Precision::fp32;
  Products products = Products::automatic;
  bool optimizer_in_files = false;  // named by the strategy, like the next one
  bool parameters_in_files = false;
};

// These options as a user writes them in a recipe or in LiteOptions.
struct ComputeNames {
  std::string strategy = "ddp";    // a name for parse_strategy()
  std::string precision = "fp32";  // a name for parse_precision()
  std::string products = "auto";
};

// How messages refer to an option, given the name of its member, such as "strategy". The default is the name
// alone.
struct OptionLabels {
  using Text = std::function<std::string(const std::string& option)>;
  Text label = [](const std::string& option) {
    return option + ": ";
  };  // begins a message: "r.yaml:4: training.strategy: "
  Text mention = [](const std::string& option) { return option; };  // within a message
  std::function<bool(const std::string& option)> given = [](const std::string&) {
    return true;
  };  // whether the option was set; false if it has its default
};

// Parses the names. `stretto launch --strategy` overrides the default strategy; a strategy that names a
// precision sets it. Throws ConfigError for unknown names, for a given strategy that contradicts the
// launcher's, and for a given precision that contradicts the strategy's.
ComputeOptions parse_compute_options(const ComputeNames& names, const OptionLabels& labels);

}  // namespace stretto
