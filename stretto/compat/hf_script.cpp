#include "stretto/compat/hf_script.h"

#include "stretto/base/error.h"
#include "stretto/compat/hf_flags.h"

namespace stretto::compat {
namespace {

// Sets defaults of the scripts that differ from those of recipes.
void set_defaults(ScriptState& state) {
  RecipeText& recipe = state.recipe;
  recipe.set("task", state.script == Script::glue  ? "text-classification"
                     : state.script == Script::ner ? "token-classification"
                                                   : "question-answering");
  recipe.set("data.max_length", state.script == Script::qa ? "384" : "128");
  if (state.script == Script::qa) recipe.set("question_answering.version_2_with_negative", "false");
  if (state.script == Script::ner) {
    recipe.set("token_classification.long_sentences", "cut");
    recipe.set("token_classification.tag_names", "[\"*\"]");
  }
  recipe.set("training.epochs", "3");
  recipe.set("training.batch_size", "8");
  recipe.set("optimizer.type", "AdamW");
  recipe.set("optimizer.lr", "5e-5");
  recipe.set("optimizer.weight_decay", "0.0");
  recipe.set("scheduler.type", "LinearWithWarmup");
  recipe.set("evaluate.batch_size", "8");
}

void use_files(ScriptState& state) {
  ScriptPlan& plan = state.plan;
  if (!plan.model.empty()) state.set_for("model_name_or_path", "model.path", quoted(plan.model.string()));
  if (plan.train) require_flag(state, "train_file", "by --do_train");
  if (plan.evaluate) require_flag(state, "validation_file", "by --do_eval");
  if (plan.predict) require_flag(state, "test_file", "by --do_predict");
  if (!plan.train && !plan.evaluate && !plan.predict)
    throw ConfigError("there is nothing to do; pass --do_train, --do_eval or --do_predict");
  if (plan.validation) state.set_for("validation_file", "data.validation", quoted(plan.validation->string()));
  if (plan.test) state.set_for("test_file", "data.test", quoted(plan.test->string()));
}

}  // namespace

ScriptPlan translate_script(Script script, const std::vector<std::string>& arguments) {
  ScriptState state{.script = script, .plan = {}, .recipe = {}, .given = parse_flags(hf_flags(), arguments)};
  require_flag(state, "output_dir", "for the model and its results");
  require_flag(state, state.has("config_name") ? "config_name" : "model_name_or_path", "to start from");
  set_defaults(state);
  state.use(hf_flags());
  use_files(state);
  use_optimizer(state);
  use_schedule(state);
  use_intervals(state);
  return finish_plan(state);
}

}  // namespace stretto::compat
