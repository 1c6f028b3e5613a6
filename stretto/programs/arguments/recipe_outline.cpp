#include "stretto/programs/arguments/recipe_outline.h"

#include "stretto/base/error.h"
#include "stretto/config/model_json.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/heads.h"

namespace stretto::arguments {

std::optional<ModelOutline> outline_of(const Recipe& recipe) {
  if (!recipe.model.path && !recipe.model.config) return std::nullopt;
  const std::string head = task_kind(recipe).head;
  try {
    const ModelJson model = read_model_json(recipe.model);
    return stretto::outline_of(model.json, model.name, head.empty() ? heads::hidden_states : head);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void require_division(const Recipe& recipe) {
  const int64_t tp = recipe.training.mesh.tp;
  if (tp == 1) return;
  const auto model = outline_of(recipe);
  if (!model || model->heads == 0 || model->divides_among(tp)) return;
  throw ConfigError("{}: {}", recipe.origins.label("training.mesh.tp"),
                    uneven_heads(model->heads, model->key_heads, tp));
}

}  // namespace stretto::arguments
