#include <fmt/format.h>

#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void SgdOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("momentum", momentum, "momentum factor", at_least(0));
  field("dampening", dampening, "dampening of the momentum");
  field("nesterov", nesterov, "Nesterov momentum");
}

void SgdOptions::check() const {
  if (!nesterov || (momentum > 0 && dampening == 0)) return;
  throw settings::SettingError(
      "nesterov", fmt::format("Nesterov momentum needs a momentum above 0 and dampening 0; found {} and {}",
                              momentum, dampening));
}

}  // namespace stretto::optim
