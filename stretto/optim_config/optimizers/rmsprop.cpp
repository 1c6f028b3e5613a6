#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

using settings::at_least;

void RmspropOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("alpha", alpha, "decay rate of the average of squared gradients", at_least(0));
  field("eps", eps, "added to the denominator", at_least(0));
  field("momentum", momentum, "momentum factor", at_least(0));
  field("centered", centered, "divide by an estimate of the gradient's variance");
}

}  // namespace stretto::optim
