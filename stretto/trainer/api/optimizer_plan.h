#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/parallel/parameter_group.h"

namespace stretto {

struct OptimizerConfig;
struct Recipe;

// One of several optimizers of a module that steps them itself (ManualOptimization).
struct NamedOptimizer {
  std::string name;
  std::string pattern;  // matches the names of its parameters in root(): "generator.*"
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule = optim::constant();  // counted in steps of this optimizer
};

// The optimizer and schedule of a run. Settings of the first group in `groups` that matches a parameter apply
// to it.
struct OptimizerPlan {
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::vector<ParameterGroup> groups = {};
  // Used instead of optimizer and schedule by a module with automatic_optimization() == false. Every
  // trainable parameter belongs to the first optimizer whose pattern matches its name.
  std::vector<NamedOptimizer> several = {};
};

// The plan of the recipe, without groups. `global_batch_size`: for a warm-up in samples; 0 if it varies.
OptimizerPlan plan_of(const Recipe& recipe, int64_t global_batch_size);

// The factor of the learning rate that optimizer.scale_lr gives. Throws ConfigError if base_batch_size or a
// fixed global batch is needed and missing.
double lr_scale_of(const OptimizerConfig& optimizer, int64_t global_batch_size);

}  // namespace stretto
