#include <cstdlib>

#include "tests/fuzz/fuzz.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/config/recipe.h"
#include "stretto/settings/yaml.h"

// Input: a recipe in YAML.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  for (const char* variable : {"STRETTO_DATA", "STRETTO_ENCODER"}) ::setenv(variable, "/folder", 1);
  return {
      "model:\n  path: bert\ndata:\n  train: a.tsv\n  max_length: 64\noptimizer:\n  type: AdamW\n  lr: 5.0e-5\n",
      "training: {epochs: 2, strategy: ddp-bf16, max_tokens: 4096}\noutput: 'runs/${HOME:-a}'\n",
      "evaluate:\n  every: 100 steps\ncheckpoint:\n  keep_last: 3\n  monitor: f1_macro\n  accept_changes: [data, \"model\"]\n",
      "scheduler:\n  type: polynomial\n  warmup_ratio: 0.1\n  power: 2\noptimizer: {type: SGD, momentum: 0.9}\n",
      "training:\n  max_grad_norm: 1\n  # comment\n  grad_accumulation_steps: 4\ndata: {text: \"a b\", label: ~}\n",
      "output: &a runs\nresume: *a\n",
      read_file(STRETTO_SOURCE_DIR "/recipes/sst2.yaml")};
}

// A refusal is a ConfigError that begins with the name of the file.
Recipe parse(const std::string& input) {
  try {
    return parse_recipe(input, "recipe.yaml");
  } catch (const ConfigError& error) {
    require(std::string_view(error.what()).starts_with("recipe.yaml"), "a refusal names the file");
    throw;
  } catch (const Error&) {
    require(false, "a recipe is refused with ConfigError");
    throw;
  }
}

void run(const std::string& input) {
  settings::parse_yaml(input, "recipe.yaml");
  Recipe recipe = parse(input);
  const std::string written = dump_recipe(recipe);
  Recipe again = parse_recipe(written, "written.yaml");
  require(again == recipe, "a recipe that is written is read to an equal one");
}

}  // namespace stretto::fuzz
