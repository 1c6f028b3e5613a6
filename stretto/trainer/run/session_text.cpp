#include "stretto/base/strings.h"
#include "stretto/parallel/fixed_order.h"
#include "stretto/strategy/batch_plan.h"
#include "stretto/trainer/api/teachers.h"
#include "stretto/trainer/run/session.h"

// The header of a run.
namespace stretto::trainer {

std::string Session::describe_lr_scale() const {
  const int64_t samples = mesh.batch_plan().global_batch_size;
  const double base = engine.facts().base_rates.lr, scale = lr_scale_of(recipe.optimizer, samples);
  if (scale == 1) return "";
  return fmt::format("lr         {:g} = {:g} x {:g}: scaled for the global batch of {} samples\n",
                     base * scale, base, scale, samples);
}

std::string Session::describe_order() const {
  if (!recipe.training.deterministic) return "";
  const BatchPlan& plan = mesh.batch_plan();
  const parallel::FixedOrderSum sum({}, plan.micro_batches(), mesh.size(Axes::sum), mesh.position(Axes::sum));
  return fmt::format(
      "order      fixed: the same bits for any number of ranks with this global batch in {} micro-batches; {} per rank for sums, one thread\n",
      plan.micro_batches(), human_bytes(static_cast<double>(sum.stored() * engine.facts().memory.gradients)));
}

std::string Session::describe_mesh() const {
  if (!engine.facts().is_divided) return "";
  return fmt::format("mesh       {}\n", mesh.describe());
}

// One group of ranks that divides layers has nobody to sum gradients with.
std::string Session::describe_sums() const {
  if (engine.facts().is_divided && mesh.size(Axes::sum) == 1) return "";
  return fmt::format("comm       {}\n", mesh.group(Axes::sum).transport());
}

std::string Session::describe() {
  const double lr =
      engine.facts().base_rates.lr * lr_scale_of(recipe.optimizer, mesh.batch_plan().global_batch_size);
  return fmt::format(
      "{}\n"
      "{}{}{}"
      "batch      {}\n"
      "{}{}{}"
      "{}\n"
      "run        {}, {} per epoch; {}, {}{}",
      parallel::describe(engine.facts(), "model",
                         describe_precision(recipe.training.precision, compute, device)),
      products ? "matmul     " + products->describe() + "\n" : "", describe_mesh(), describe_sums(),
      describe_batch(mesh.batch_plan(), mesh.size(Axis::tp)), describe_order(), describe_teachers(module),
      describe_lr_scale(),
      manual ? manual->describe() : describe_groups(engine.facts().tensors, lr, engine.facts().optimizer),
      counted(total_steps(), "step"), steps_per_epoch(), counted(train.size(), "sample"),
      counted(train.total_length(), "token"),
      mesh.size(Axes::data) > 1 && parallel::has_torch_dropout(module.root())
          ? "\ndropout    torch::nn::Dropout uses a separate generator per rank: results depend on the world size"
          : "");
}

}  // namespace stretto::trainer
