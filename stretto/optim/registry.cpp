#include "stretto/optim/registry.h"

#include "stretto/optim/optimizers.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

// The update rule of a bundled type; its settings are in optim_config/optimizer_registry.cpp.
struct Rule {
  std::string name;
  MakeOptimizer make;
};

const Registry<Rule>& bundled_rules() {
  static const Registry<Rule> rules("a bundled optimizer", {{"AdamW", optimizer_maker(adamw)},
                                                            {"SGD", optimizer_maker(sgd)},
                                                            {"Adam", optimizer_maker(adam)},
                                                            {"Adadelta", optimizer_maker(adadelta)},
                                                            {"Adagrad", optimizer_maker(adagrad)},
                                                            {"Adamax", optimizer_maker(adamax)},
                                                            {"Adafactor", optimizer_maker(adafactor)},
                                                            {"Muon", optimizer_maker(muon)},
                                                            {"Lamb", optimizer_maker(lamb)},
                                                            {"ASGD", optimizer_maker(asgd)},
                                                            {"NAdam", optimizer_maker(nadam)},
                                                            {"RAdam", optimizer_maker(radam)},
                                                            {"RMSprop", optimizer_maker(rmsprop)},
                                                            {"Rprop", optimizer_maker(rprop)},
                                                            {"SparseAdam", optimizer_maker(sparse_adam)},
                                                            {"LBFGS", optimizer_maker(lbfgs)}});
  return rules;
}

}  // namespace

void register_optimizer(settings::Kind kind, MakeOptimizer make) {
  optimizers().add({std::move(kind), std::move(make)});
}

std::unique_ptr<Optimizer> make_optimizer(const settings::Choice& choice) {
  const settings::Settings& settings = choice.settings();
  settings::check_settings(settings, choice.type);
  const OptimizerKind& known = optimizers().at(choice.type, "optimizer");
  return known.make ? known.make(settings) : bundled_rules().at(choice.type, "optimizer").make(settings);
}

}  // namespace stretto::optim
