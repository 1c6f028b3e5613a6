#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

using settings::at_least;

void AdadeltaOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("rho", rho, "decay rate of the averages of squared gradient and squared update",
        at_least(0).at_most(1));
  field("eps", eps, "added to both averages", at_least(0));
}

}  // namespace stretto::optim
