#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

using settings::at_least;

void AsgdOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("lambd", lambd, "decay term", at_least(0));
  field("alpha", alpha, "power by which lr falls", at_least(0));
  field("t0", t0, "step at which averaging begins", at_least(0));
}

}  // namespace stretto::optim
