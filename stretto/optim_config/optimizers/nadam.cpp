#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

using settings::at_least;

void NadamOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field("momentum_decay", momentum_decay, "decay of the momentum's schedule", at_least(0));
  field("decoupled_weight_decay", decoupled_weight_decay,
        "as AdamW applies it, not as a part of the gradient");
}

}  // namespace stretto::optim
