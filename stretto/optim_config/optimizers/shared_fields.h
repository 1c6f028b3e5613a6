#pragma once

#include "stretto/settings/fields.h"

namespace stretto::optim {

// Declarations of settings that several optimizers share. The structs define the defaults.

template <class Options>
void declare_lr_and_weight_decay(settings::Fields& field, Options& options) {
  field("lr", options.lr, "peak learning rate", settings::at_least(0));
  field("weight_decay", options.weight_decay, "not applied to biases and norm weights",
        settings::at_least(0));
}

template <class Options>
void declare_averages(settings::Fields& field, Options& options) {
  field("betas", options.betas, "decay rates of the averages of gradient and squared gradient",
        settings::at_least(0).below(1));
  field("eps", options.eps, "added to the denominator", settings::at_least(0));
}

template <class Options>
void declare_adam(settings::Fields& field, Options& options) {
  declare_lr_and_weight_decay(field, options);
  declare_averages(field, options);
}

}  // namespace stretto::optim
