#include "stretto/trainer/optimizer_plan.h"

#include <cmath>

#include <fnmatch.h>

#include "stretto/base/error.h"

namespace stretto {
namespace {

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerConfig& config) {
  if (config.type == "SGD") {
    return optim::sgd({config.lr, config.momentum, config.dampening, config.weight_decay, config.nesterov});
  }
  if (config.type == "AdamW") {
    return optim::adamw({config.lr, config.betas[0], config.betas[1], config.eps, config.weight_decay});
  }
  throw ConfigError("optimizer.type: \"{}\" is not an optimizer; possible: AdamW, SGD", config.type);
}

std::unique_ptr<optim::Schedule> make_schedule(const SchedulerConfig& config) {
  if (config.type == "Constant") return optim::constant();
  if (config.type == "LinearWithWarmup")
    return optim::linear_with_warmup({config.num_warmup_steps, config.warmup_ratio});
  throw ConfigError("scheduler.type: \"{}\" is not a schedule; possible: LinearWithWarmup, Constant",
                    config.type);
}

// The index of the first group that matches, or their number.
size_t group_of(const std::string& name, const std::vector<ParameterGroup>& groups) {
  size_t i = 0;
  while (i < groups.size() && ::fnmatch(groups[i].pattern.c_str(), name.c_str(), 0) != 0) ++i;
  return i;
}

void require_followers(const std::vector<NamedParameter>& trained,
                       const std::vector<ParameterGroup>& groups) {
  std::vector<int> followers(groups.size() + 1, 0);
  for (const NamedParameter& parameter : trained) ++followers[group_of(parameter.name, groups)];
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!std::isfinite(groups[i].lr_factor) || groups[i].lr_factor < 0) {
      throw ConfigError("configure_optimizers: the lr_factor of \"{}\" is {}; it must be at least 0",
                        groups[i].pattern, groups[i].lr_factor);
    }
    if (followers[i] > 0) continue;
    std::vector<std::string> names;
    for (const NamedParameter& parameter : trained) {
      if (names.size() < 8) names.push_back(parameter.name);
    }
    throw ConfigError(
        "configure_optimizers: no trained parameter matches \"{}\", or all that do follow an earlier group; parameters are named {}{}",
        groups[i].pattern, fmt::join(names, ", "), trained.size() > names.size() ? ", ..." : "");
  }
}

}  // namespace

OptimizerPlan plan_of(const Recipe& recipe) {
  return {make_optimizer(recipe.optimizer), make_schedule(recipe.scheduler)};
}

ModuleTensors collect_tensors(const torch::nn::Module& root, const std::vector<ParameterGroup>& groups,
                              const optim::Optimizer& optimizer) {
  ModuleTensors tensors = collect_tensors(root);
  require_followers(tensors.trained, groups);
  for (NamedParameter& parameter : tensors.trained) {
    const size_t i = group_of(parameter.name, groups);
    if (i < groups.size() && groups[i].frozen) parameter.tensor.set_requires_grad(false);
  }
  tensors = collect_tensors(root);
  for (NamedParameter& parameter : tensors.trained) {
    parameter.sparse = parameter.sparse && optimizer.steps_rows();
    const size_t i = group_of(parameter.name, groups);
    if (i == groups.size()) continue;
    parameter.lr_factor = groups[i].lr_factor;
    parameter.decay = groups[i].decay.value_or(parameter.decay);
  }
  return tensors;
}

}  // namespace stretto
