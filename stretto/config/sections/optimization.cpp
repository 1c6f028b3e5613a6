#include "stretto/config/recipe.h"
#include "stretto/config/sections/limits.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/optim_config/schedule_registry.h"
#include "stretto/settings/rule.h"

// The sections optimizer, scheduler, loss_scale, parameters and ema.
namespace stretto {

using settings::above;
using settings::at_least;

void OptimizerConfig::fields(settings::Fields& field) {
  Choice::fields(field);
  field(
      "scale_lr", scale_lr,
      "multiply the learning rate by global_batch_size / base_batch_size (linear) or by its square root (sqrt)");
  field("base_batch_size", base_batch_size, "with scale_lr: the global batch size for which lr is given",
        at_least(1).at_most(max_total));
}

OptimizerConfig::OptimizerConfig()
    : Choice(optim::optimizer_kinds(), "AdamW",
             "optimizer; its settings have the names of PyTorch's arguments") {}

void SchedulerConfig::fields(settings::Fields& field) {
  Choice::fields(field);
  field("num_warmup_samples", num_warmup_samples,
        "with types that have a warm-up, instead of num_warmup_steps: training samples until lr is reached",
        at_least(0).at_most(max_total));
}

SchedulerConfig::SchedulerConfig()
    : Choice(
          optim::schedule_kinds(), "LinearWithWarmup",
          "schedule of the learning rate; its settings have the names of PyTorch's and transformers' arguments") {
}

void LossScaleConfig::fields(settings::Fields& field) {
  field("init_scale", init_scale, "what the loss is multiplied by at first", above(0));
  field("growth_factor", growth_factor,
        "factor of the scale after growth_interval steps without an overflow of the gradients", above(1));
  field("growth_interval", growth_interval, "steps without an overflow until the scale grows",
        at_least(1).at_most(max_total));
  field("backoff_factor", backoff_factor, "factor of the scale when gradients overflow; that step is skipped",
        above(0).below(1));
  field("hysteresis", hysteresis, "overflows until the scale is lowered, counted from its last growth",
        at_least(1).at_most(max_count));
  field("min_scale", min_scale,
        "the scale is not lowered below this; the run ends when gradients keep overflowing", above(0));
  field("dynamic", dynamic, "off: the scale stays init_scale");
}

void ParametersConfig::fields(settings::Fields& field) {
  field("freeze", freeze, "patterns of parameters that are not trained: [\"embeddings.*\"]");
  field("lr_factors", lr_factors,
        "factors of the learning rate by pattern, the first that matches: [\"head.*=3\", \"encoder.*=0.5\"]",
        settings::matches("[^=]+=(?:[0-9]{1,9}\\.?[0-9]{0,18}|\\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?",
                          "a pattern and a factor: head.*=3"));
  field(
      "weight_decay", weight_decay,
      "patterns of parameters to which the optimizer's weight_decay applies although they are biases or weights of norms");
  field("no_weight_decay", no_weight_decay, "patterns of further parameters to which it does not apply");
  field(
      "layer_decay", layer_decay,
      "factor of the learning rate from each block of the model to the one below: the last block has it once, the first block of n has layer_decay^n, the embeddings once more; what follows the blocks has the full rate",
      above(0).at_most(1));
}

void EmaConfig::fields(settings::Fields& field) {
  field(
      "decay", decay,
      "average the weights: average = decay x average + (1 - decay) x weights after each step; unset: no average",
      at_least(0).below(1));
  field("warmup", warmup,
        "use min(decay, (1 + step) / (10 + step)), so that the first weights are forgotten sooner");
  field("evaluate", evaluate, "evaluate and save the averaged weights; off: the last ones");
}

}  // namespace stretto
