#include "stretto/optim_config/optimizer_registry.h"

#include "stretto/optim_config/optimizers.h"

namespace stretto::optim {

Registry<OptimizerKind>& optimizers() {
  const auto kind = [](std::string type, std::string help, auto defaults, int state_tensors,
                       bool reevaluates = false) -> OptimizerKind {
    return {.kind = {std::move(type), std::move(help), settings::Settings(std::move(defaults))},
            .state_tensors = state_tensors,
            .reevaluates = reevaluates};
  };
  // The default rates of AdamW and SGD are for fine-tuning; the others are those of torch.optim, and Lamb's
  // of DeepSpeed.
  static Registry<OptimizerKind> registry(
      "an optimizer",
      {kind("AdamW", "Adam with decoupled weight decay", AdamwOptions{.lr = 5e-5}, 2),
       kind("SGD", "stochastic gradient descent", SgdOptions{.lr = 5e-5, .weight_decay = 0.01}, 0),
       kind("Adam", "averages of gradient and squared gradient", AdamOptions{}, 2),
       kind("Adadelta", "steps scaled by the average of past updates", AdadeltaOptions{}, 2),
       kind("Adagrad", "lr divided by the root of the sum of squared gradients", AdagradOptions{}, 1),
       kind("Adamax", "Adam with the largest gradient in place of its square", AdamaxOptions{}, 2),
       kind("Adafactor", "averages of squared gradients by row and column", AdafactorOptions{}, 0),
       kind("Muon", "orthogonalized momentum for matrices of hidden layers, AdamW for other parameters",
            MuonOptions{}, 1),
       kind("Lamb", "Adam with steps in proportion to the norm of each tensor, for large batches",
            LambOptions{}, 2),
       kind("ASGD", "averaged stochastic gradient descent", AsgdOptions{}, 0),
       kind("NAdam", "Adam with Nesterov momentum", NadamOptions{}, 2),
       kind("RAdam", "Adam with a rectified first phase", RadamOptions{}, 2),
       kind("RMSprop", "lr divided by the root of an average of squared gradients", RmspropOptions{}, 1),
       kind("Rprop", "steps by the gradient's sign only", RpropOptions{}, 2),
       kind("SparseAdam",
            "Adam that steps only the rows of sparse embedding tables that have gradients; on the CPU",
            SparseAdamOptions{}, 2),
       kind("LBFGS", "quasi-Newton steps, each of several evaluations of the same batch", LbfgsOptions{}, 0,
            /*reevaluates=*/true)});
  return registry;
}

std::vector<settings::Kind> optimizer_kinds() {
  std::vector<settings::Kind> kinds;
  for (const OptimizerKind& optimizer : optimizers().entries()) kinds.push_back(optimizer.kind);
  return kinds;
}

}  // namespace stretto::optim
