#include "stretto/compat/hf_script.h"

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/hf_flags.h"

namespace stretto::compat {
namespace {

const char* task_of(Script script) {
  switch (script) {
    case Script::glue:
      return "text-classification";
    case Script::ner:
      return "token-classification";
    case Script::clm:
      return "causal-lm";
    case Script::qa:
    case Script::flair_ner:  // see flair_script.h
    case Script::llama:      // see llama_script.h
      break;
  }
  return "question-answering";
}

// Without a validation file run_clm.py validates on the first lines of the training file.
void split_training_file(ScriptState& state) {
  ScriptPlan& plan = state.plan;
  if (state.script != Script::clm || plan.validation || !state.has("train_file")) return;
  const std::string text = state.value("validation_split_percentage", "5");
  const auto percentage = parse_double(text);
  if (!percentage || *percentage <= 0 || *percentage >= 100)
    throw ConfigError("--validation_split_percentage {}: expected a number between 0 and 100", text);
  plan.split_percentage = *percentage;
  plan.split_file = state.given.at("train_file");
  const std::string extension = plan.split_file.extension().string();
  plan.split_folder = plan.run_folder() / "cache";
  plan.validation = plan.split_folder / ("validation" + extension);
  state.set_for("train_file", "data.train", quoted((plan.split_folder / ("train" + extension)).string()));
}

// Sets defaults of the scripts that differ from those of recipes.
void set_defaults(ScriptState& state) {
  RecipeText& recipe = state.recipe;
  recipe.set("task", task_of(state.script));
  if (state.script != Script::clm) recipe.set("data.max_length", state.script == Script::qa ? "384" : "128");
  if (state.script == Script::qa) recipe.set("question_answering.version_2_with_negative", "false");
  if (state.script == Script::ner) {
    recipe.set("token_classification.long_sentences", "cut");
    recipe.set("token_classification.tag_names", "[\"*\"]");
  }
  if (state.script == Script::clm) {
    recipe.set("causal_lm.blocks", "run-clm");
    recipe.set("causal_lm.document", "line");
    recipe.set("causal_lm.keep_newlines", "true");
    recipe.set("causal_lm.append_eos", "false");
  }
  recipe.set("training.epochs", "3");
  recipe.set("training.batch_size", "8");
  recipe.set("optimizer.type", "AdamW");
  recipe.set("optimizer.lr", "5e-5");
  recipe.set("optimizer.weight_decay", "0.0");
  recipe.set("scheduler.type", "LinearWithWarmup");
  recipe.set("evaluate.batch_size", "8");
}

// Requires a model to start from, or everything that a model with random weights needs.
void require_start(const ScriptState& state) {
  if (state.has("model_name_or_path")) return;
  if (state.script != Script::clm)
    return require_flag(state, state.has("config_name") ? "config_name" : "model_name_or_path",
                        "to start from");
  if (!state.has("config_name") && !state.has("model_type"))
    throw ConfigError(
        "pass --model_name_or_path, or --model_type or --config_name and --tokenizer_name for random weights");
  require_flag(state, "tokenizer_name",
               state.has("config_name") ? "with --config_name" : "with --model_type");
}

void use_files(ScriptState& state) {
  ScriptPlan& plan = state.plan;
  if (!plan.model.empty()) state.set_for("model_name_or_path", "model.path", quoted(plan.model.string()));
  if (plan.train) require_flag(state, "train_file", "by --do_train");
  split_training_file(state);
  if (plan.evaluate && !plan.validation) require_flag(state, "validation_file", "by --do_eval");
  if (plan.predict && state.script == Script::clm)
    throw ConfigError("--do_predict: run_clm.py predicts nothing; pass --do_eval with a --validation_file");
  if (plan.predict) require_flag(state, "test_file", "by --do_predict");
  if (!plan.train && !plan.evaluate && !plan.predict)
    throw ConfigError("there is nothing to do; pass --do_train, --do_eval or --do_predict");
  if (!plan.split_file.empty())
    state.recipe.set("data.validation", quoted(plan.validation->string()));
  else if (plan.validation)
    state.set_for("validation_file", "data.validation", quoted(plan.validation->string()));
  if (plan.test) state.set_for("test_file", "data.test", quoted(plan.test->string()));
}

}  // namespace

ScriptPlan translate_script(Script script, const std::vector<std::string>& arguments) {
  ScriptState state{.script = script, .plan = {}, .recipe = {}, .given = parse_flags(hf_flags(), arguments)};
  require_flag(state, "output_dir", "for the model and its results");
  require_start(state);
  set_defaults(state);
  state.use(hf_flags());
  use_files(state);
  use_optimizer(state);
  use_schedule(state);
  use_intervals(state);
  return finish_plan(state);
}

}  // namespace stretto::compat
