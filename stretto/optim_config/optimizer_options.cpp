#include "stretto/optim_config/optimizer_options.h"

#include <fmt/format.h>

#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;
using settings::Settings;

namespace {

// What most of them have. Defaults are the structs'.
template <class Options>
void declare_lr_and_weight_decay(settings::Fields& field, Options& options) {
  field("lr", options.lr, "peak learning rate", at_least(0));
  field("weight_decay", options.weight_decay, "not applied to biases and norm weights", at_least(0));
}

template <class Options>
void declare_adam(settings::Fields& field, Options& options) {
  declare_lr_and_weight_decay(field, options);
  field("betas", options.betas, "decay rates of the averages of gradient and squared gradient",
        at_least(0).below(1));
  field("eps", options.eps, "added to the denominator", at_least(0));
}

}  // namespace

void AdamwOptions::fields(settings::Fields& field) { declare_adam(field, *this); }

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

void AdamOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field("amsgrad", amsgrad, "divide by the largest average of the squared gradient so far");
}

void AdadeltaOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("rho", rho, "decay rate of the averages of squared gradient and squared update",
        at_least(0).at_most(1));
  field("eps", eps, "added to both averages", at_least(0));
}

void AdagradOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("lr_decay", lr_decay, "lr is divided by 1 + lr_decay x steps", at_least(0));
  field("initial_accumulator_value", initial_accumulator_value, "of the sum of squared gradients",
        at_least(0));
  field("eps", eps, "added to the denominator", at_least(0));
}

void AdamaxOptions::fields(settings::Fields& field) { declare_adam(field, *this); }

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

void AsgdOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("lambd", lambd, "decay term", at_least(0));
  field("alpha", alpha, "power by which lr falls", at_least(0));
  field("t0", t0, "step at which averaging begins", at_least(0));
}

void NadamOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field("momentum_decay", momentum_decay, "decay of the momentum's schedule", at_least(0));
  field("decoupled_weight_decay", decoupled_weight_decay,
        "as AdamW applies it, not as a part of the gradient");
}

void RadamOptions::fields(settings::Fields& field) {
  declare_adam(field, *this);
  field("decoupled_weight_decay", decoupled_weight_decay,
        "as AdamW applies it, not as a part of the gradient");
}

void RmspropOptions::fields(settings::Fields& field) {
  declare_lr_and_weight_decay(field, *this);
  field("alpha", alpha, "decay rate of the average of squared gradients", at_least(0));
  field("eps", eps, "added to the denominator", at_least(0));
  field("momentum", momentum, "momentum factor", at_least(0));
  field("centered", centered, "divide by an estimate of the gradient's variance");
}

void RpropOptions::fields(settings::Fields& field) {
  field("lr", lr, "first size of a step", at_least(0));
  field("etas", etas, "factors by which the size falls where the sign changes, and rises where it stays",
        above(0));
  field("step_sizes", step_sizes, "smallest and largest size of a step", at_least(0));
}

void RpropOptions::check() const {
  if (etas[0] < 1 && etas[1] > 1) return;
  throw settings::SettingError("etas", fmt::format("[{}, {}] is not [below 1, above 1]", etas[0], etas[1]));
}

void SparseAdamOptions::fields(settings::Fields& field) {
  field("lr", lr, "learning rate", at_least(0));
  field("betas", betas, "decay rates of the averages of gradient and squared gradient", at_least(0).below(1));
  field("eps", eps, "added to the denominator", at_least(0));
}

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

std::vector<settings::Kind>& optimizer_kinds() {
  // The rates of AdamW and SGD are for fine-tuning; the others are torch.optim's.
  static std::vector<settings::Kind> kinds = {
      {"AdamW", "Adam with decoupled weight decay", Settings(AdamwOptions{.lr = 5e-5})},
      {"SGD", "stochastic gradient descent", Settings(SgdOptions{.lr = 5e-5, .weight_decay = 0.01})},
      {"Adam", "averages of gradient and squared gradient", Settings(AdamOptions{})},
      {"Adadelta", "steps as large as those before, without a unit of lr", Settings(AdadeltaOptions{})},
      {"Adagrad", "lr divided by the root of the sum of squared gradients", Settings(AdagradOptions{})},
      {"Adamax", "Adam with the largest gradient in place of its square", Settings(AdamaxOptions{})},
      {"Adafactor", "averages of squared gradients by row and column", Settings(AdafactorOptions{})},
      {"ASGD", "averaged stochastic gradient descent", Settings(AsgdOptions{})},
      {"NAdam", "Adam with Nesterov momentum", Settings(NadamOptions{})},
      {"RAdam", "Adam with a rectified first phase", Settings(RadamOptions{})},
      {"RMSprop", "lr divided by the root of an average of squared gradients", Settings(RmspropOptions{})},
      {"Rprop", "steps by the gradient's sign alone", Settings(RpropOptions{})},
      {"SparseAdam",
       "Adam that steps only the rows of sparse embedding tables that have gradients; on the CPU",
       Settings(SparseAdamOptions{})},
      {"LBFGS", "quasi-Newton steps, each of several evaluations of the same batch",
       Settings(LbfgsOptions{})},
  };
  return kinds;
}

}  // namespace stretto::optim
