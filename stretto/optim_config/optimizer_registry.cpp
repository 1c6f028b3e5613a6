#include "stretto/optim_config/optimizer_registry.h"

#include "stretto/optim_config/optimizers.h"

namespace stretto::optim {

Registry<OptimizerKind>& optimizers() {
  const auto kind = [](std::string type, std::string help, auto defaults) -> OptimizerKind {
    return {{std::move(type), std::move(help), settings::Settings(std::move(defaults))}};
  };
  // The rates of AdamW and SGD are for fine-tuning; the others are torch.optim's.
  static Registry<OptimizerKind> registry(
      "an optimizer",
      {kind("AdamW", "Adam with decoupled weight decay", AdamwOptions{.lr = 5e-5}),
       kind("SGD", "stochastic gradient descent", SgdOptions{.lr = 5e-5, .weight_decay = 0.01}),
       kind("Adam", "averages of gradient and squared gradient", AdamOptions{}),
       kind("Adadelta", "steps as large as those before, without a unit of lr", AdadeltaOptions{}),
       kind("Adagrad", "lr divided by the root of the sum of squared gradients", AdagradOptions{}),
       kind("Adamax", "Adam with the largest gradient in place of its square", AdamaxOptions{}),
       kind("Adafactor", "averages of squared gradients by row and column", AdafactorOptions{}),
       kind("ASGD", "averaged stochastic gradient descent", AsgdOptions{}),
       kind("NAdam", "Adam with Nesterov momentum", NadamOptions{}),
       kind("RAdam", "Adam with a rectified first phase", RadamOptions{}),
       kind("RMSprop", "lr divided by the root of an average of squared gradients", RmspropOptions{}),
       kind("Rprop", "steps by the gradient's sign alone", RpropOptions{}),
       kind("SparseAdam",
            "Adam that steps only the rows of sparse embedding tables that have gradients; on the CPU",
            SparseAdamOptions{}),
       kind("LBFGS", "quasi-Newton steps, each of several evaluations of the same batch", LbfgsOptions{})});
  return registry;
}

std::vector<settings::Kind> optimizer_kinds() {
  std::vector<settings::Kind> kinds;
  for (const OptimizerKind& optimizer : optimizers().entries()) kinds.push_back(optimizer.kind);
  return kinds;
}

}  // namespace stretto::optim
