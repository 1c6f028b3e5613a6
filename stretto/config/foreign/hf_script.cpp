#include "stretto/config/foreign/hf_script.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/foreign/script_flags.h"

namespace stretto::foreign {
namespace {

void use_schedule(ScriptState& state, const std::string& value) {
  static const std::map<std::string, std::string> names = {
      {"linear", "LinearWithWarmup"},
      {"constant", "Constant"},
      {"constant_with_warmup", "ConstantWithWarmup"},
      {"cosine", "CosineWithWarmup"},
      {"cosine_with_restarts", "CosineWithHardRestartsWithWarmup"},
      {"polynomial", "PolynomialDecayWithWarmup"},
      {"inverse_sqrt", "InverseSQRT"}};
  const auto found = names.find(value);
  if (found == names.end()) throw ConfigError("--lr_scheduler_type {}: it is not supported", value);
  state.recipe.set("scheduler.type", found->second);
}

void use_epochs(ScriptState& state, const std::string& value) {
  const auto epochs = parse_double(value);
  if (!epochs || *epochs < 1 || *epochs != static_cast<double>(static_cast<int64_t>(*epochs)))
    throw ConfigError(
        "--num_train_epochs {}: expected a whole number from 1; use --max_steps for a part of an epoch",
        value);
  state.recipe.set("training.epochs", std::to_string(static_cast<int64_t>(*epochs)));
}

void use_intervals(ScriptState& state, const char* setting, const std::string& strategy,
                   const char* steps_flag, const std::string& unset_steps) {
  if (strategy == "no") return state.recipe.set(setting, "never");
  if (strategy == "epoch") return state.recipe.set(setting, "epoch");
  if (strategy != "steps")
    throw ConfigError("{}: \"{}\" is not one of no, epoch, steps", steps_flag, strategy);
  state.recipe.set(setting, state.value(steps_flag, unset_steps));
}

const std::vector<Flag>& flags() {
  const auto store = [](auto member) {
    return [member](ScriptState& state, const std::string& value) { state.plan.*member = value; };
  };
  const auto stage = [](const std::string& name, bool ScriptPlan::*member) {
    return Flag{name, true, [=](ScriptState& state, const std::string& value) {
                  state.plan.*member = is_true(name, value);
                }};
  };
  static const std::string local = "models are fetched by `stretto pull`, and no code of models is executed";
  static const std::string packed = "batches are packed without padding";
  static const std::string built_in =
      "data is read and tokenised on all processors, once, and cached by its content";
  static const std::vector<Flag> table = {
      {"model_name_or_path", false, store(&ScriptPlan::model)},
      setting("tokenizer_name", "tokenizer.path"),
      {"config_name", false,
       [](ScriptState& state, const std::string& value) {
         if (!state.has("model_name_or_path")) state.recipe.set("model.config", quoted(value));
       }},
      setting("train_file", "data.train"),
      {"validation_file", false, store(&ScriptPlan::validation)},
      {"test_file", false, store(&ScriptPlan::test)},
      setting("text_column_name", "data.text"),
      setting("label_column_name", "data.label"),
      setting("max_seq_length", "data.max_length"),
      setting("doc_stride", "question_answering.doc_stride"),
      setting("n_best_size", "question_answering.n_best_size"),
      setting("max_answer_length", "question_answering.max_answer_length"),
      setting("null_score_diff_threshold", "question_answering.null_score_diff_threshold"),
      boolean("version_2_with_negative", "question_answering.version_2_with_negative"),
      boolean("label_all_tokens", "token_classification.label_all_tokens"),
      stage("do_train", &ScriptPlan::train),
      stage("do_eval", &ScriptPlan::evaluate),
      stage("do_predict", &ScriptPlan::predict),
      {"output_dir", false, store(&ScriptPlan::output_dir)},
      stage("overwrite_output_dir", &ScriptPlan::overwrite),
      setting("per_device_train_batch_size", "training.batch_size"),
      setting("per_device_eval_batch_size", "evaluate.batch_size"),
      setting("gradient_accumulation_steps", "training.grad_accumulation_steps"),
      {"num_train_epochs", false, use_epochs},
      {"max_steps", false,
       [](ScriptState& state, const std::string& value) {
         const auto steps = parse_int(value);
         if (!steps) throw ConfigError("--max_steps {}: expected a whole number", value);
         if (*steps > 0) state.recipe.set("training.max_steps", value);
       }},
      setting("learning_rate", "optimizer.lr"),
      setting("weight_decay", "optimizer.weight_decay"),
      read_later("adam_beta1"),  // together, in translate_script
      read_later("adam_beta2"),
      setting("adam_epsilon", "optimizer.eps"),
      setting("max_grad_norm", "training.max_grad_norm"),
      {"lr_scheduler_type", false, use_schedule},
      {"warmup_ratio", false,
       [](ScriptState& state, const std::string& value) {
         if (parse_double(value).value_or(1) != 0 && parse_int(state.value("warmup_steps", "0")) == 0)
           state.recipe.set("scheduler.warmup_ratio", value);
       }},
      {"warmup_steps", false,
       [](ScriptState& state, const std::string& value) {
         if (parse_int(value) != 0) state.recipe.set("scheduler.num_warmup_steps", value);
       }},
      setting("seed", "training.seed"),
      {"fp16", true,
       [](ScriptState& state, const std::string& value) {
         if (!is_true("fp16", value)) return;
         state.recipe.set("training.precision", "bf16");
         state.plan.notes.emplace_back("--fp16: computed in bf16, with fp32 gradients and master weights");
       }},
      {"bf16", true,
       [](ScriptState& state, const std::string& value) {
         if (is_true("bf16", value)) state.recipe.set("training.precision", "bf16");
       }},
      {"no_cuda", true,
       [](ScriptState& state, const std::string& value) {
         if (is_true("no_cuda", value)) state.recipe.set("training.device", "cpu");
       }},
      {"use_cpu", true,
       [](ScriptState& state, const std::string& value) {
         if (is_true("use_cpu", value)) state.recipe.set("training.device", "cpu");
       }},
      {"gradient_checkpointing", true,
       [](ScriptState& state, const std::string& value) {
         if (is_true("gradient_checkpointing", value))
           state.recipe.set("training.activation_checkpointing", "1");
       }},
      setting("logging_steps", "track.log_every"),
      {"save_total_limit", false,
       [](ScriptState& state, const std::string& value) { state.recipe.set("checkpoint.keep_last", value); }},
      {"metric_for_best_model", false,
       [](ScriptState& state, const std::string& value) {
         state.recipe.set("checkpoint.monitor", quoted(value.starts_with("eval_") ? value.substr(5) : value));
       }},
      // Read together with other flags, in translate_script.
      read_later("eval_strategy"),
      read_later("evaluation_strategy"),
      read_later("eval_steps"),
      read_later("save_strategy"),
      read_later("save_steps"),
      read_later("load_best_model_at_end", true),
      {"task_name", false,
       [](ScriptState& state, const std::string& value) {
         const std::string task = lower_case(value);
         if (state.script == Script::ner && task != "ner")
           throw ConfigError("--task_name {}: name the column of the tags by --label_column_name {}_tags",
                             value, value);
         if (state.script != Script::glue) return;
         state.recipe.set("text_classification.glue_task", quoted(task));
         state.plan.glue_task = task;
       }},
      ignored("pad_to_max_length", true, packed),
      ignored("group_by_length", true, packed),
      ignored("overwrite_cache", true, built_in),
      ignored("preprocessing_num_workers", false, built_in),
      ignored("dataloader_num_workers", false, built_in),
      ignored("use_fast_tokenizer", true, "there is one tokenizer"),
      ignored("cache_dir", false, local),
      ignored("model_revision", false, local),
      ignored("use_auth_token", true, local),
      ignored("token", false, local),
      ignored("trust_remote_code", true, local),
      ignored("ignore_mismatched_sizes", true, "a head of another task is never loaded"),
      ignored("return_entity_level_metrics", true, "results always hold each type"),
      ignored("ddp_find_unused_parameters", true, "uses are counted in the graph"),
      ignored("ddp_backend", false, "training.backend selects it"),
      ignored("ddp_timeout", false, "--collective-timeout sets it"),
      ignored("local_rank", false, "stretto starts the ranks: -N"),
      ignored("logging_dir", false, "TensorBoard's files are in the run folder"),
      ignored("logging_strategy", false, "--logging_steps sets the interval"),
      ignored("logging_first_step", true, "the first step is always reported"),
      ignored("report_to", false, "metrics.jsonl and TensorBoard's files are written"),
      ignored("run_name", false, "runs are named by their folder"),
      ignored("disable_tqdm", true, "track.progress sets it"),
      ignored("save_safetensors", true, "models are always saved as safetensors"),
      refused(
          "dataset_name", false, {},
          "stretto downloads nothing; export the data set to files and pass --train_file, --validation_file and --test_file"),
      refused("dataset_config_name", false, {}, "stretto downloads nothing; pass files"),
      setting("max_train_samples", "data.max_train_samples"),
      {"max_eval_samples", false,
       [](ScriptState& state, const std::string& value) {
         state.plan.max_eval_samples = value;
         if (state.has("validation_file")) state.recipe.set("data.max_validation_samples", quoted(value));
       }},
      setting("max_predict_samples", "data.max_test_samples"),
      {"label_smoothing_factor", false,
       [](ScriptState& state, const std::string& value) {
         if (parse_double(value) == 0.0) return;
         if (state.script != Script::glue)
           throw ConfigError("--label_smoothing_factor {}: it is supported by run-glue only", value);
         state.recipe.set("text_classification.label_smoothing", value);
       }},
      refused("push_to_hub", true, {"False", "false"}, "stretto uploads nothing"),
      refused("deepspeed", false, {},
              "pass the file to stretto train --deepspeed with the recipe of --print-recipe"),
      refused("resume_from_checkpoint", false, {},
              "a run is resumed by running the same command without --overwrite_output_dir"),
  };
  return table;
}

// Defaults of the scripts that differ from those of recipes.
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
  recipe.set("track.log_every", "500");
}

}  // namespace

ScriptPlan translate_script(Script script, const std::vector<std::string>& arguments) {
  ScriptState state{.script = script, .plan = {}, .recipe = {}, .given = parse_flags(flags(), arguments)};
  require_flag(state, "output_dir", "for the model and its results");
  require_flag(state, state.has("config_name") ? "config_name" : "model_name_or_path", "to start from");
  set_defaults(state);
  for (const auto& [name, value] : state.given) find_flag(flags(), name).use(state, value);
  ScriptPlan& plan = state.plan;
  if (!plan.model.empty()) state.recipe.set("model.path", quoted(plan.model.string()));
  if (plan.train) require_flag(state, "train_file", "by --do_train");
  if (plan.evaluate) require_flag(state, "validation_file", "by --do_eval");
  if (plan.predict) require_flag(state, "test_file", "by --do_predict");
  if (!plan.train && !plan.evaluate && !plan.predict)
    throw ConfigError("there is nothing to do; pass --do_train, --do_eval or --do_predict");
  if (plan.validation) state.recipe.set("data.validation", quoted(plan.validation->string()));
  if (plan.test) state.recipe.set("data.test", quoted(plan.test->string()));
  if (state.has("adam_beta1") || state.has("adam_beta2"))
    state.recipe.set("optimizer.betas", fmt::format("[{}, {}]", state.value("adam_beta1", "0.9"),
                                                    state.value("adam_beta2", "0.999")));
  const std::string evaluation = state.value("eval_strategy", state.value("evaluation_strategy", "no"));
  if (evaluation != "no")
    require_flag(state, "validation_file", "to evaluate while training (--eval_strategy)");
  use_intervals(state, "evaluate.every", evaluation, "eval_steps", "500");
  use_intervals(state, "checkpoint.every", state.value("save_strategy", "steps"), "save_steps", "500");
  if (evaluation != "no" &&
      !is_true("load_best_model_at_end", state.value("load_best_model_at_end", "false")))
    plan.notes.emplace_back("the best model is kept, as with --load_best_model_at_end, not the last one");
  state.recipe.set("output", quoted(plan.run_folder().string()));
  plan.recipe = state.recipe.text();
  return std::move(state.plan);
}

}  // namespace stretto::foreign
