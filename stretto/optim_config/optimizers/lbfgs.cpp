#include "stretto/optim_config/optimizers.h"

namespace stretto::optim {

using settings::at_least;

void LbfgsOptions::fields(settings::Fields& field) {
  field("lr", lr, "length of an iteration's move; with a line search, the first that it tries", at_least(0));
  field("max_iter", max_iter, "iterations per step", at_least(1));
  field("max_eval", max_eval, "evaluations of the loss per step; default: max_iter x 5 / 4", at_least(1));
  field("tolerance_grad", tolerance_grad, "a step ends where no element of the gradient is larger",
        at_least(0));
  field("tolerance_change", tolerance_change, "a step ends where loss or parameters change by less",
        at_least(0));
  field("history_size", history_size,
        "changes of parameters and gradient that are kept, 8 bytes each per parameter", at_least(1));
  field("line_search_fn", line_search_fn, "how the length of a move is found",
        settings::one_of({"none", "strong_wolfe"}));
}

}  // namespace stretto::optim
