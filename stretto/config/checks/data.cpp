#include "stretto/base/error.h"
#include "stretto/config/checks/checks.h"
#include "stretto/config/mixture.h"
#include "stretto/config/task_kind.h"

namespace stretto {
namespace {

void check_mixture(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  const std::string place = origins.label("data.mixture");
  if (!task_kind(recipe).reads_corpora) {
    throw ConfigError("{}: only the task {} reads a mixture; {} is {}; set data.train to a file", place,
                      tasks_with([](const TaskKind& kind) { return kind.reads_corpora; }),
                      origins.mention("task"), recipe.task);
  }
  if (recipe.data.train)
    throw ConfigError("{}: there are training samples already; remove this or {}", place,
                      origins.mention("data.train"));
  for (const auto& [part, instead] : {std::pair("data.validation_split", "data.validation"),
                                      {"data.max_train_samples", "training.max_samples"}}) {
    if (!origins.given(part)) continue;
    throw ConfigError("{}: it takes a part of data.train, but {} is set; set {} instead", origins.label(part),
                      origins.mention("data.mixture"), instead);
  }
  for (const MixturePart& part : mixture_of(recipe)) require_file(recipe, "data.mixture", part.path);
}

}  // namespace

void check_data(const Recipe& recipe) {
  if (!recipe.data.mixture.empty()) {
    check_mixture(recipe);
  } else {
    require_path(recipe, "data.train", recipe.data.train, "by stretto train");
  }
  if (recipe.data.test) require_file(recipe, "data.test", *recipe.data.test);
  if (recipe.data.validation_split && !task_kind(recipe).draws_validation) {
    throw ConfigError(
        "{}: only the task {} draws validation samples from the training samples; {} is {}; set data.validation to a file",
        recipe.origins.label("data.validation_split"), tasks_with(&TaskKind::draws_validation),
        recipe.origins.mention("task"), recipe.task);
  }
  if (recipe.data.validation_split && recipe.data.validation) {
    throw ConfigError("{}: there are validation samples already; remove this or {}",
                      recipe.origins.label("data.validation_split"),
                      recipe.origins.mention("data.validation"));
  }
  if (recipe.data.max_validation_samples && !recipe.data.validation) {
    throw ConfigError("{}: it limits data.validation, which is not set; remove this, or set data.validation",
                      recipe.origins.label("data.max_validation_samples"));
  }
  if (recipe.data.validation) require_file(recipe, "data.validation", *recipe.data.validation);
}

}  // namespace stretto
