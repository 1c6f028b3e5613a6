#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stretto/base/registry.h"
#include "stretto/settings/choice.h"

namespace stretto::optim {

class Optimizer;  // optim/optimizer.h

// Makes an optimizer from the settings of its type.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const settings::Settings&)>;

// A type of `optimizer:` in recipes.
struct OptimizerKind {
  settings::Kind kind;
  MakeOptimizer make =
      {};  // empty for the bundled types: their update rules, which need libtorch, are in optim/registry.cpp
  // The minimum number of tensors as large as the parameters in its state, over all settings; the launcher's
  // memory estimate uses it.
  int state_tensors = 0;
  bool reevaluates = false;  // as Optimizer::reevaluates()

  const std::string& name() const { return kind.type; }
};

// All types. A program adds types by register_optimizer (optim/registry.h), before it reads a recipe.
Registry<OptimizerKind>& optimizers();

// The settings of all types, in the order of registration.
std::vector<settings::Kind> optimizer_kinds();

}  // namespace stretto::optim
