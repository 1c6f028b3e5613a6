#include "stretto/programs/arguments/memory_need.h"

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"

namespace stretto::arguments {
namespace {

// Private memory of a rank without a model, measured on x86-64 with the CPU build of libtorch.
constexpr double library_bytes = 60e6;

double file_bytes(const std::optional<std::filesystem::path>& path) {
  std::error_code error;
  const auto size = path ? std::filesystem::file_size(*path, error) : 0;
  return path && !error ? static_cast<double>(size) : 0;
}

// The parameter count of a transformer, from its config.json; 0 if it does not describe one.
double parameters_in(const std::filesystem::path& config) {
  try {
    const auto json = read_json(config);
    const auto number = [&](const char* name) { return json.value(name, 0.0); };
    const double hidden = number("hidden_size"), inner = number("intermediate_size");
    return (number("vocab_size") + number("max_position_embeddings")) * hidden +
           number("num_hidden_layers") * (4 * hidden * hidden + 2 * hidden * inner);
  } catch (const std::exception&) {
    return 0;
  }
}

double parameters(const ModelConfig& model) {
  if (model.config) return parameters_in(*model.config);
  return model.path ? parameters_in(*model.path / "config.json") : 0;
}

}  // namespace

double memory_per_rank(const Recipe& recipe, Verb verb, int ranks) {
  constexpr double text_copies = 2;  // the content of the file, and its texts
  const double word = recipe.training.precision == Precision::fp64 ? 8 : 4;
  const double count = parameters(recipe.model);
  if (verb == Verb::test) return library_bytes + count * word + text_copies * file_bytes(recipe.data.test);
  const double shared =
      recipe.training.strategy.starts_with("ddp") ? 1 : ranks;  // lower bound for sharded strategies
  // Master, gradient and two tensors of optimizer state; on GPUs these are in device memory.
  const double words = recipe.training.offload_optimizer ? 2 : 4;
  const double state = recipe.training.device == DeviceChoice::cuda ? 0 : count * word * words / shared;
  const double compute = recipe.training.precision == Precision::bf16 ? count * 2 / shared : 0;
  return library_bytes + state + compute +
         text_copies * (file_bytes(recipe.data.train) + file_bytes(recipe.data.validation));
}

double library_memory() { return library_bytes; }

void require_memory(int ranks, double per_rank, double available) {
  if (per_rank * ranks <= available) return;
  throw ConfigError(
      "{} need at least {} of memory ({} per rank), but {} are available here; start at most {}",
      counted(ranks, "rank"), human_bytes(per_rank * ranks), human_bytes(per_rank), human_bytes(available),
      static_cast<int>(available / per_rank));
}

void require_memory(const Recipe& recipe, Verb verb, int ranks, double available) {
  const double need = memory_per_rank(recipe, verb, ranks);
  if (need * ranks <= available) return;
  int fit = ranks;
  while (fit > 0 && memory_per_rank(recipe, verb, fit) * fit > available) --fit;
  throw ConfigError(
      "{} rank{} need at least {} of memory ({} per rank), but {} are available; {}, or pass --oversubscribe to start them anyway",
      ranks, ranks == 1 ? "" : "s", human_bytes(need * ranks), human_bytes(need), human_bytes(available),
      fit == 0 ? "use a smaller model, or a machine with more memory"
               : fmt::format("start at most {} (-N {})", fit, fit));
}

}  // namespace stretto::arguments
