#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

using settings::at_least;

void AdafactorOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("beta2_decay", beta2_decay, "the average of squared gradients decays at 1 - step^beta2_decay",
        settings::Rule{}.at_most(0));
  field(
      "eps", eps,
      "lower limits of the averages (0: the machine epsilon) and of a tensor's root mean square, by which lr is multiplied",
      at_least(0));
  field("d", d, "largest root mean square of an update", at_least(1));
}

}  // namespace stretto::optim
