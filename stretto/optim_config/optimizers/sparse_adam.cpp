#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

void SparseAdamOptions::fields(settings::Fields& field) {
  field("lr", lr, "learning rate", settings::at_least(0));
  declare_averages(field, *this);
}

}  // namespace stretto::optim
