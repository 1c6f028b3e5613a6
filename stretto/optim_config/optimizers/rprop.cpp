#include <fmt/format.h>

#include "stretto/optim_config/optimizers.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;

void RpropOptions::fields(settings::Fields& field) {
  field("lr", lr, "first size of a step", at_least(0));
  field("etas", etas, "factors by which the size falls where the sign changes, and rises where it stays",
        above(0));
  field("step_sizes", step_sizes, "smallest and largest size of a step", at_least(0));
}

void RpropOptions::check() const {
  if (etas[0] < 1 && etas[1] > 1) return;
  throw settings::SettingError(
      "etas", fmt::format("expected a factor below 1 and one above 1, found [{}, {}]", etas[0], etas[1]));
}

}  // namespace stretto::optim
