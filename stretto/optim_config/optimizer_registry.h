#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stretto/base/registry.h"
#include "stretto/settings/choice.h"

namespace stretto::optim {

class Optimizer;  // optim/optimizer.h

// How an optimizer is made of the settings of its type.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const settings::Settings&)>;

// A type of `optimizer:` in recipes.
struct OptimizerKind {
  settings::Kind kind;
  MakeOptimizer make =
      {};  // empty for the bundled types: their update rules, which need libtorch, are in optim/registry.cpp
  // Tensors as large as the parameters that its state has at least, whatever its settings: the launcher's bound of memory.
  int state_tensors = 0;

  const std::string& name() const { return kind.type; }
};

// All types. A program adds its own by register_optimizer (optim/registry.h), before it reads a recipe.
Registry<OptimizerKind>& optimizers();

// Their settings, in the order of registration.
std::vector<settings::Kind> optimizer_kinds();

}  // namespace stretto::optim
