#include "stretto/programs/arguments/memory_need.h"

#include <algorithm>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/task_kind.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/programs/arguments/recipe_outline.h"

namespace stretto::arguments {
namespace {

// The private memory of a rank without a model, measured on x86-64 with the CPU build of libtorch.
constexpr double library_bytes = 60e6;

double file_bytes(const std::optional<std::filesystem::path>& path) {
  std::error_code error;
  const auto size = path ? std::filesystem::file_size(*path, error) : 0;
  return path && !error ? static_cast<double>(size) : 0;
}

ModelSizes sizes_of(const ModelOutline& model, const Recipe& recipe) {
  const auto trainable = model.trainable_elements();
  const int64_t state = optim::optimizers().at(recipe.optimizer.type, "optimizer.type").state_tensors;
  const int64_t tp = recipe.training.mesh.tp;  // of which each has at least this share of each block
  std::vector<int64_t> units = model.trainable_blocks();
  for (int64_t& unit : units) unit /= tp;
  return {.units = std::move(units),
          .optimizer_bytes = state * trainable * bytes_of(recipe.training.precision).master / tp,
          .optimizer_in_files = recipe.training.offload_optimizer.has_value(),
          .parameters_in_files = recipe.training.offload_parameters.has_value()};
}

// Returns the memory of the model under the strategy.
double model_bytes(const Recipe& recipe, Verb verb, const JobShape& job) {
  const auto model = outline_of(recipe);
  if (!model) return 0;
  const ElementBytes element = bytes_of(recipe.training.precision);
  if (verb == Verb::test)
    return static_cast<double>(model->elements() * element.master) / recipe.training.mesh.tp;
  if (recipe.training.device == DeviceChoice::cuda) return 0;  // in device memory
  const int64_t frozen = (model->elements() - model->trainable_elements()) *
                         (element.compute > 0 ? element.compute : element.master);
  JobShape shape = job;
  shape.tp = static_cast<int>(recipe.training.mesh.tp);
  shape.shard_ranks = static_cast<int>(recipe.training.dp_shard.value_or(0));
  shape.shared_parameters = recipe.training.shared_parameters == SharedParameters::automatic;
  const MemoryForecast forecast = forecast_memory(
      sizes_of(*model, recipe), find_sharding(recipe.training.strategy), recipe.training.precision, shape);
  return static_cast<double>(forecast.parameters.total() + frozen);
}

}  // namespace

double memory_per_rank(const Recipe& recipe, Verb verb, const JobShape& job) {
  constexpr double text_copies = 2;                         // the content of the file, and its texts
  const double texts = task_kind(recipe).reads_corpora ? 0  // they are mapped
                       : verb == Verb::test
                           ? file_bytes(recipe.data.test)
                           : file_bytes(recipe.data.train) + file_bytes(recipe.data.validation);
  return library_bytes + model_bytes(recipe, verb, job) + text_copies * texts;
}

double library_memory() { return library_bytes; }

void require_memory(int ranks, double per_rank, double available) {
  if (per_rank * ranks <= available) return;
  throw ConfigError(
      "{} need at least {} of memory ({} per rank), but {} are available here; start at most {}",
      counted(ranks, "rank"), human_bytes(per_rank * ranks), human_bytes(per_rank), human_bytes(available),
      static_cast<int>(available / per_rank));
}

void require_memory(const Recipe& recipe, Verb verb, const JobShape& job, double available) {
  const int ranks = job.ranks_per_host;
  const double need = memory_per_rank(recipe, verb, job);
  if (need * ranks <= available) return;
  const auto fits = [&](int fewer) {
    const JobShape smaller = {.ranks = fewer * job.hosts(), .ranks_per_host = fewer};
    return memory_per_rank(recipe, verb, smaller) * fewer <= available;
  };
  int fit = ranks;
  while (fit > 0 && !fits(fit)) --fit;
  throw ConfigError(
      "{} rank{} need{} at least {} of memory ({} per rank), but {} are available; {}, or pass --oversubscribe to start them anyway",
      ranks, ranks == 1 ? "" : "s", ranks == 1 ? "s" : "", human_bytes(need * ranks), human_bytes(need),
      human_bytes(available),
      fit == 0 ? "use a smaller model, or a machine with more memory"
               : fmt::format("start at most {} (-N {})", fit, fit));
}

}  // namespace stretto::arguments
