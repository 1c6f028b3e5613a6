#include "stretto/compat/hf_flags.h"

#include <algorithm>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/tasks/text_classification.h"
#include "stretto/model_config/outline.h"

namespace stretto::compat {
namespace {

// Maps names such as "SST-2" and "sts_b" to those of the setting.
void use_task(ScriptState& state, const std::string& value) {
  if (state.script == Script::ner && lower_case(value) != "ner")
    throw ConfigError("--task_name {}: name the column of the tags by --label_column_name {}_tags", value,
                      value);
  if (state.script != Script::glue) return;
  const auto plain = [](std::string name) {
    std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
    return lower_case(name);
  };
  TextClassificationConfig unset;
  const auto fields = settings::fields_of(unset);
  const auto& tasks = std::ranges::find(fields, "glue_task", &settings::Field::key)->rule.choices;
  const auto found =
      std::ranges::find_if(tasks, [&](const std::string& task) { return plain(task) == plain(value); });
  if (found == tasks.end())
    throw ConfigError("--task_name {}: it is not a GLUE task{}; expected one of {}", value,
                      did_you_mean(plain(value), tasks), fmt::join(tasks, ", "));
  state.recipe.set("text_classification.glue_task", quoted(*found));
  state.plan.glue_task = *found;
}

// The file of --config_name or --model_name_or_path, which may be a folder.
std::filesystem::path config_file(const std::filesystem::path& given) {
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(given, failed);
  return is_folder ? given / "config.json" : given;
}

// The configuration of a new model. The scripts load the weights of --model_name_or_path, if that is given,
// with this configuration instead of their own.
void use_config(ScriptState& state, const std::string& value) {
  if (!state.has("model_name_or_path"))
    return state.recipe.set("model.config", quoted(config_file(value).string()));
  const std::string& model = state.given.at("model_name_or_path");
  const auto place = [](const std::string& given) {
    return std::filesystem::absolute(config_file(given)).lexically_normal();
  };
  if (place(value) == place(model) || !state.has("do_train")) return;  // a trained model has its own
  throw ConfigError(
      "--config_name {}: the weights of --model_name_or_path {} cannot have the configuration of another model; remove this, or change the config.json of that model",
      value, model);
}

// --config_overrides n_embd=64,scale_attn_weights=False as a section of the recipe.
std::string overrides_section(const std::string& text) {
  std::vector<std::string> entries;
  for (const std::string_view part : split(text, ',')) {
    if (trim(part).empty()) continue;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      throw ConfigError("--config_overrides {}: \"{}\" is not KEY=VALUE", text, part);
    const std::string key(trim(part.substr(0, equals))), value(trim(part.substr(equals + 1)));
    const std::string word = lower_case(value);
    entries.push_back(
        fmt::format("{}: {}", quoted(key), word == "true" || word == "false" ? word : quoted(value)));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

// A family with the sizes of its configuration in transformers, but for --config_overrides. As in run_clm.py
// it has no effect with a model or a config.json.
void use_model_type(ScriptState& state, const std::string& value) {
  if (state.script != Script::clm)
    throw ConfigError("--model_type {}: it is a flag of run_clm.py only; pass --config_name", value);
  if (state.has("model_name_or_path") || state.has("config_name")) return;
  const std::vector<std::string> known = bundled_decoders();
  if (std::ranges::find(known, value) == known.end()) {
    throw ConfigError("--model_type {}: it is not one of {}{}", value, fmt::join(known, ", "),
                      did_you_mean(value, known));
  }
  state.recipe.set("model.type", quoted(value));
  state.set_for(state.has("config_overrides") ? "config_overrides" : "model_type", "model.config",
                overrides_section(state.value("config_overrides", "")));
}

void check_overrides(ScriptState& state, const std::string& value) {
  for (const char* other : {"config_name", "model_name_or_path"}) {
    if (state.has(other))
      throw ConfigError("--config_overrides {}: it cannot be used with --{}; pass --model_type", value,
                        other);
  }
  if (!state.has("model_type")) throw ConfigError("--config_overrides {}: pass --model_type with it", value);
}

void use_smoothing(ScriptState& state, const std::string& value) {
  if (parse_double(value) == 0.0) return;
  if (state.script != Script::glue)
    throw ConfigError("--label_smoothing_factor {}: it is supported by run-glue only", value);
  state.recipe.set("text_classification.label_smoothing", value);
}

void use_half(ScriptState& state, const std::string& value) {
  if (!is_true("fp16", value)) return;
  if (state.is_true("bf16")) throw ConfigError("--fp16 {}: --bf16 is given too; remove one of them", value);
  state.recipe.set("training.precision", "fp16");
}

// Parses values such as "full_shard auto_wrap".
void use_fsdp(ScriptState& state, const std::string& value) {
  static const std::map<std::string, std::string> strategies = {{"full_shard", "fsdp"},
                                                                {"true", "fsdp"},
                                                                {"shard_grad_op", "zero2"},
                                                                {"hybrid_shard", "hsdp"},
                                                                {"no_shard", "ddp"}};
  for (const std::string_view word : split(value, ' ')) {
    const std::string option = lower_case(word);
    if (option.empty() || option == "auto_wrap" || option == "false") continue;
    const auto found = strategies.find(option);
    if (found == strategies.end())
      throw ConfigError(
          "--fsdp {}: {} is not supported; expected full_shard, shard_grad_op or hybrid_shard, which are the strategies fsdp, zero2 and hsdp",
          value, option);
    state.recipe.set("training.strategy", found->second);
  }
}

// The order of samples has no separate seed.
void use_data_seed(ScriptState& state, const std::string& value) {
  if (value != state.value("seed", "42"))
    throw ConfigError("--data_seed {}: there is one seed for all; expected that of --seed, {}", value,
                      state.value("seed", "42"));
}

// Trackers that write files are enabled in addition to metrics.jsonl; those that need a server are not.
void use_trackers(ScriptState& state, const std::string& value) {
  std::string trackers = "jsonl";
  for (const std::string_view word : split(value, ' ')) {
    const std::string name = lower_case(word);
    if (name.empty()) continue;
    if (name == "none") continue;
    if (name == "tensorboard" || name == "mlflow") {
      trackers += ", " + name;
    } else if (name == "all") {
      trackers += ", tensorboard";
    } else {
      state.plan.notes.push_back(
          fmt::format("--report_to {}: it is not supported; metrics are in metrics.jsonl", name));
    }
  }
  state.recipe.set("track.trackers", "[" + trackers + "]");
}

void use_sampling(ScriptState& state, const std::string& value) {
  if (value == "sequential") return state.recipe.set("training.shuffle", "false");
  if (value == "group_by_length") {
    state.plan.notes.emplace_back(
        "--train_sampling_strategy group_by_length is ignored: batches are packed without padding");
  } else if (value != "random") {
    throw ConfigError("--train_sampling_strategy {}: expected random, sequential or group_by_length", value);
  }
}

void use_resume(ScriptState& state, const std::string& value) {
  const std::string lower = lower_case(value);
  if (lower == "true" || lower == "false") return;  // the same command resumes an unfinished run
  state.recipe.set("resume", quoted(value));
}

void use_max_steps(ScriptState& state, const std::string& value) {
  const auto steps = parse_int(value);
  if (!steps) throw ConfigError("--max_steps {}: expected a whole number", value);
  if (*steps > 0) state.recipe.set("training.max_steps", value);
}

void use_best_metric(ScriptState& state, const std::string& value) {
  state.recipe.set("checkpoint.monitor", quoted(value.starts_with("eval_") ? value.substr(5) : value));
}

std::vector<Flag> make_flags() {
  const auto store = [](auto member) {
    return [member](ScriptState& state, const std::string& value) { state.plan.*member = value; };
  };
  const auto stage = [](const std::string& name, bool ScriptPlan::*member) {
    return Flag{name, true, [=](ScriptState& state, const std::string& value) {
                  state.plan.*member = is_true(name, value);
                }};
  };
  const auto max_eval_samples = [](ScriptState& state, const std::string& value) {
    state.plan.max_eval_samples = value;
    if (state.has("validation_file") || state.script == Script::clm)
      state.recipe.set("data.max_validation_samples", quoted(value));
  };
  return {
      // the model and the data
      {"model_name_or_path", false, store(&ScriptPlan::model)},
      {"config_name", false, use_config},
      {"model_type", false, use_model_type},
      {"config_overrides", false, check_overrides},
      setting("tokenizer_name", "tokenizer.path"),
      {"task_name", false, use_task},
      setting("train_file", "data.train"),
      {"validation_file", false, store(&ScriptPlan::validation)},
      {"test_file", false, store(&ScriptPlan::test)},
      setting("text_column_name", "data.text"),
      setting("label_column_name", "data.label"),
      setting("max_seq_length", "data.max_length"),
      setting("max_train_samples", "data.max_train_samples"),
      {"max_eval_samples", false, max_eval_samples},
      setting("max_predict_samples", "data.max_test_samples"),
      // the tasks
      boolean("label_all_tokens", "token_classification.label_all_tokens"),
      stage("return_entity_level_metrics", &ScriptPlan::entity_level),
      boolean("version_2_with_negative", "question_answering.version_2_with_negative"),
      setting("doc_stride", "question_answering.doc_stride"),
      setting("n_best_size", "question_answering.n_best_size"),
      setting("max_answer_length", "question_answering.max_answer_length"),
      setting("null_score_diff_threshold", "question_answering.null_score_diff_threshold"),
      {"label_smoothing_factor", false, use_smoothing},
      setting("block_size", "data.max_length"),
      boolean("keep_linebreaks", "causal_lm.keep_newlines"),
      read_later("validation_split_percentage"),
      // stages
      stage("do_train", &ScriptPlan::train),
      stage("do_eval", &ScriptPlan::evaluate),
      stage("do_predict", &ScriptPlan::predict),
      {"output_dir", false, store(&ScriptPlan::output_dir)},
      stage("overwrite_output_dir", &ScriptPlan::overwrite),
      {"resume_from_checkpoint", true, use_resume},
      // steps
      setting("num_train_epochs", "training.epochs"),
      {"max_steps", false, use_max_steps},
      setting("per_device_train_batch_size", "training.batch_size"),
      setting("per_gpu_train_batch_size", "training.batch_size"),
      setting("per_device_eval_batch_size", "evaluate.batch_size"),
      setting("per_gpu_eval_batch_size", "evaluate.batch_size"),
      setting("gradient_accumulation_steps", "training.grad_accumulation_steps"),
      setting("max_grad_norm", "training.max_grad_norm"),
      setting("seed", "training.seed"),
      {"data_seed", false, use_data_seed},
      {"train_sampling_strategy", false, use_sampling},
      // optimizer and schedule
      setting("learning_rate", "optimizer.lr"),
      setting("weight_decay", "optimizer.weight_decay"),
      read_later("optim"),
      read_later("adafactor", true),
      read_later("adam_beta1"),
      read_later("adam_beta2"),
      read_later("adam_epsilon"),
      read_later("lr_scheduler_type"),
      read_later("lr_scheduler_kwargs"),
      read_later("warmup_ratio"),
      read_later("warmup_steps"),
      // precision, memory, ranks
      {"fp16", true, use_half},
      if_true("bf16", "training.precision", "bf16"),
      if_true("no_cuda", "training.device", "cpu"),
      if_true("use_cpu", "training.device", "cpu"),
      if_true("gradient_checkpointing", "training.activation_checkpointing", "1"),
      if_true("activation_checkpointing", "training.activation_checkpointing", "1"),
      as_list({"fsdp", true, use_fsdp}),
      setting("ddp_bucket_cap_mb", "training.bucket_mb"),
      // use_intervals
      read_later("logging_strategy"),
      read_later("logging_steps"),
      read_later("eval_strategy"),
      read_later("evaluation_strategy"),
      read_later("eval_steps"),
      read_later("save_strategy"),
      read_later("save_steps"),
      read_later("load_best_model_at_end", true),
      if_true("eval_on_start", "evaluate.at_start", "true"),
      // checkpoints and reports
      setting("save_total_limit", "checkpoint.keep_last"),
      {"metric_for_best_model", false, use_best_metric},
      {"greater_is_better", true,
       [](ScriptState& state, const std::string& value) {
         state.recipe.set("checkpoint.mode", is_true("greater_is_better", value) ? "max" : "min");
       }},
      {"report_to", false, use_trackers, /*list=*/true, /*none_is_value=*/true},
      setting("logging_dir", "track.logging_dir"),
      setting("run_name", "track.run_name"),
      if_true("disable_tqdm", "track.progress", "line"),
  };
}

}  // namespace

const std::vector<Flag>& hf_flags() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> flags = make_flags();
    std::ranges::copy(inert_hf_flags(), std::back_inserter(flags));
    return flags;
  }();
  return table;
}

}  // namespace stretto::compat
