#pragma once

#include <memory>
#include <string>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/settings/choice.h"

namespace stretto::optim {

// Converts `make` to a function of settings that contain its options.
template <class Options>
MakeOptimizer optimizer_maker(std::unique_ptr<Optimizer> (*make)(const Options&)) {
  return [make](const settings::Settings& settings) { return make(*settings.get<Options>()); };
}

// Makes a type available to recipes. Throws ConfigError if the name is taken. Not thread-safe: call it at the
// start of a program, before it reads a recipe.
void register_optimizer(settings::Kind kind, MakeOptimizer make);

// register_optimizer("Lion", "steps by the sign of the momentum", lion), where lion takes a struct of options
// that declares its fields(), like AdamwOptions.
template <class Options>
void register_optimizer(std::string type, std::string help,
                        std::unique_ptr<Optimizer> (*make)(const Options&)) {
  register_optimizer({std::move(type), std::move(help), settings::Settings(Options{})},
                     optimizer_maker(make));
}

// The optimizer that `choice` describes. Throws ConfigError for an unknown type, and for settings that are
// out of range or contradict each other.
std::unique_ptr<Optimizer> make_optimizer(const settings::Choice& choice);

}  // namespace stretto::optim
