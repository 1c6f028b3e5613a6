#include "stretto/optim/registry.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/optim/adadelta.h"
#include "stretto/optim/adafactor.h"
#include "stretto/optim/adagrad.h"
#include "stretto/optim/adam.h"
#include "stretto/optim/adamax.h"
#include "stretto/optim/adamw.h"
#include "stretto/optim/asgd.h"
#include "stretto/optim/lbfgs.h"
#include "stretto/optim/nadam.h"
#include "stretto/optim/radam.h"
#include "stretto/optim/rmsprop.h"
#include "stretto/optim/rprop.h"
#include "stretto/optim/sgd.h"
#include "stretto/optim/sparse_adam.h"

namespace stretto::optim {
namespace {

// By type; optimizer_kinds() has their settings.
std::map<std::string, MakeOptimizer>& makers() {
  static std::map<std::string, MakeOptimizer> all = {
      {"AdamW", optimizer_maker(adamw)},
      {"SGD", optimizer_maker(sgd)},
      {"Adam", optimizer_maker(adam)},
      {"Adadelta", optimizer_maker(adadelta)},
      {"Adagrad", optimizer_maker(adagrad)},
      {"Adamax", optimizer_maker(adamax)},
      {"Adafactor", optimizer_maker(adafactor)},
      {"ASGD", optimizer_maker(asgd)},
      {"NAdam", optimizer_maker(nadam)},
      {"RAdam", optimizer_maker(radam)},
      {"RMSprop", optimizer_maker(rmsprop)},
      {"Rprop", optimizer_maker(rprop)},
      {"SparseAdam", optimizer_maker(sparse_adam)},
      {"LBFGS", optimizer_maker(lbfgs)},
  };
  return all;
}

}  // namespace

void register_optimizer(settings::Kind kind, MakeOptimizer make) {
  if (!makers().emplace(kind.type, std::move(make)).second)
    throw ConfigError("there is an optimizer named {} already; choose another name", kind.type);
  optimizer_kinds().push_back(std::move(kind));
}

std::unique_ptr<Optimizer> make_optimizer(const settings::Choice& choice) {
  try {
    choice.check();
  } catch (const settings::SettingError& error) {
    throw ConfigError("{}: {}", choice.type, error.what());
  }
  const auto maker = makers().find(choice.type);
  if (maker == makers().end()) throw ConfigError("\"{}\" is not a registered optimizer", choice.type);
  return maker->second(choice.settings());
}

}  // namespace stretto::optim
