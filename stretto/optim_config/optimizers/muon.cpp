#include <fmt/format.h>

#include "stretto/optim_config/optimizers.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;

void MuonOptions::fields(settings::Fields& field) {
  field("lr", lr, "peak learning rate of the matrices", above(0));
  field("weight_decay", weight_decay, "not applied to biases and norm weights", at_least(0));
  field("momentum", momentum, "decay rate of the average of gradients", at_least(0).below(1));
  field("nesterov", nesterov, "Nesterov momentum");
  field("ns_coefficients", ns_coefficients, "the three coefficients of the Newton-Schulz iteration");
  field("eps", eps, "smallest norm by which a matrix is divided", above(0));
  field("ns_steps", ns_steps, "steps of the Newton-Schulz iteration", at_least(1).below(100));
  field(
      "adjust_lr_fn", adjust_lr_fn,
      "factor of lr by the shape of a matrix: original sqrt(max(1, rows / columns)), or match_rms_adamw 0.2 sqrt(max(rows, columns)), with which learning rates of AdamW apply",
      settings::one_of({"original", "match_rms_adamw"}));
  field("adamw_lr", adamw_lr,
        "peak learning rate of the parameters that AdamW updates; unset: lr. The schedule applies to both",
        at_least(0));
  field("adamw_betas", adamw_betas, "AdamW's decay rates of the averages of gradient and squared gradient",
        at_least(0).below(1));
  field("adamw_eps", adamw_eps, "added to AdamW's denominator", at_least(0));
}

void MuonOptions::check() const {
  if (ns_coefficients.size() != 3)
    throw settings::SettingError("ns_coefficients",
                                 fmt::format("expected 3 numbers, found {}", ns_coefficients.size()));
}

}  // namespace stretto::optim
