#include "stretto/programs/arguments/recipe_handover.h"

#include <cstdlib>
#include <optional>

#include "stretto/base/sealed_memory.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/environment.h"
#include "stretto/compat/foreign.h"

namespace stretto::arguments {
namespace {

constexpr const char* variable = "STRETTO_RECIPE";  // the number of the descriptor

nlohmann::json describe(const RecipeArguments& arguments) {
  const compat::ForeignFiles& files = arguments.files;
  return {arguments.recipe.string(),  arguments.overrides,       arguments.strategy,
          files.deepspeed.string(),   files.accelerate.string(), files.parameters.string(),
          files.hps.string(),         arguments.allow_nonfinite, arguments.tp,
          arguments.sequence_parallel};
}

// Reads the recipe from stretto's launcher; nullopt if there is none, or if it belongs to another command
// line (in a program that a rank has started).
std::optional<Recipe> handed_recipe(const RecipeArguments& arguments) {
  const char* number = std::getenv(variable);
  if (number == nullptr) return std::nullopt;
  const auto text = read_sealed_memory(static_cast<int>(parse_int(number).value_or(-1)));
  if (!text) return std::nullopt;
  const auto handed = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!handed.is_object() || handed.value("arguments", nlohmann::json()) != describe(arguments))
    return std::nullopt;
  return decode_recipe(handed.at("recipe"), arguments.program);
}

}  // namespace

RecipeHandover::RecipeHandover(const RecipeArguments& arguments, const Recipe& recipe)
    : memory_(make_sealed_memory(
          "stretto recipe",
          nlohmann::json{{"arguments", describe(arguments)}, {"recipe", encode_recipe(recipe)}}.dump())) {}

std::map<std::string, std::string> RecipeHandover::environment() const {
  return {{variable, std::to_string(memory_.get())}};
}

Recipe recipe_of_rank(const RecipeArguments& arguments, Verb verb) {
  if (auto handed = handed_recipe(arguments)) return std::move(*handed);
  Recipe recipe = load_checked(arguments, verb);  // another launcher has started the ranks
  if (verb != Verb::test) {
    compat::require_batch_equation(compat::read_foreign(arguments.files), recipe,
                                   cluster::read_rank_info().world_size);
  }
  return recipe;
}

}  // namespace stretto::arguments
