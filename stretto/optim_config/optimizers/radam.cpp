#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

void RadamOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field("decoupled_weight_decay", decoupled_weight_decay,
        "as AdamW applies it, not as a part of the gradient");
}

}  // namespace stretto::optim
