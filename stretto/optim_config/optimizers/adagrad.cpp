#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

using settings::at_least;

void AdagradOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("lr_decay", lr_decay, "lr is divided by 1 + lr_decay x steps", at_least(0));
  field("initial_accumulator_value", initial_accumulator_value, "of the sum of squared gradients",
        at_least(0));
  field("eps", eps, "added to the denominator", at_least(0));
}

}  // namespace stretto::optim
