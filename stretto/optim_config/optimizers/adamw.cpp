#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"

namespace stretto::optim {

void AdamwOptions::fields(settings::Fields& field) { declare_adam(field, *this); }

}  // namespace stretto::optim
