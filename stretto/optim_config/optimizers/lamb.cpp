#include <fmt/format.h>

#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/optimizers/shared_fields.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;

void LambOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field(
      "bias_correction", bias_correction,
      "correction of the averages, which begin at 0: of themselves (moments, as in the paper), by the step size (step, as in DeepSpeed), or none",
      settings::one_of({"moments", "step", "none"}));
  field("max_coeff", max_coeff, "largest trust ratio, by which a tensor's lr is multiplied", above(0));
  field("min_coeff", min_coeff, "smallest trust ratio", at_least(0));
}

void LambOptions::check() const {
  if (min_coeff > max_coeff)
    throw settings::SettingError("min_coeff",
                                 fmt::format("{} is above max_coeff, which is {}", min_coeff, max_coeff));
}

}  // namespace stretto::optim
