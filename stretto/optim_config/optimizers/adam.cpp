#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

void AdamOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field("amsgrad", amsgrad, "divide by the largest average of the squared gradient so far");
}

}  // namespace stretto::optim
