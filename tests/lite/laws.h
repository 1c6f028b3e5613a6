#pragma once

#include <functional>
#include <map>
#include <string>

#include "zoo.h"

// The cases of lite_laws. Each trains with Lite and in a plain libtorch loop, and throws if the results
// differ.
namespace stretto {

// `folder`: for checkpoints and other files.
using Law = std::function<void(const LiteOptions&, const std::string& folder)>;
using Laws = std::map<std::string, Law>;

Laws accumulation_laws();
Laws checkpoint_laws();
Laws data_laws();
Laws divided_laws();
Laws job_laws();
Laws lbfgs_laws();
Laws optimizer_laws();
Laws precision_laws();

inline LiteOptions fp64(LiteOptions options) {
  options.precision = "fp64";
  return options;
}

}  // namespace stretto
