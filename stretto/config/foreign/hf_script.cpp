#include "stretto/config/foreign/hf_script.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::foreign {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_true(const std::string& flag, const std::string& value) {
  const std::string lower = lower_case(value);
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "t" || lower == "y") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "f" || lower == "n") return false;
  throw ConfigError("--{}: found \"{}\"; expected true or false", flag, value);
}

// A value in YAML: numbers and booleans as they are, text quoted.
std::string quoted(const std::string& value) {
  if (parse_double(value)) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
    if (c == '$') text += '$';
  }
  return text + "\"";
}

// Collects settings in sections, in the order in which they are first used.
class RecipeText {
 public:
  // `value` is YAML.
  void set(const std::string& setting, const std::string& value) {
    const size_t dot = setting.find('.');
    const std::string section = dot == std::string::npos ? "" : setting.substr(0, dot);
    const std::string key = dot == std::string::npos ? setting : setting.substr(dot + 1);
    auto found = std::ranges::find(sections_, section, &Section::name);
    if (found == sections_.end()) found = sections_.insert(found, {section, {}});
    const auto line = std::ranges::find(found->lines, key, &std::pair<std::string, std::string>::first);
    if (line != found->lines.end()) {
      line->second = value;
    } else {
      found->lines.emplace_back(key, value);
    }
  }

  std::string text() const {
    std::string yaml;
    for (const Section& section : sections_) {
      if (!section.name.empty()) yaml += section.name + ":\n";
      for (const auto& [key, value] : section.lines)
        yaml += fmt::format("{}{}: {}\n", section.name.empty() ? "" : "  ", key, value);
    }
    return yaml;
  }

 private:
  struct Section {
    std::string name;
    std::vector<std::pair<std::string, std::string>> lines;
  };
  std::vector<Section> sections_;
};

struct State {
  Script script;
  ScriptPlan plan;
  RecipeText recipe;
  std::map<std::string, std::string> given;

  bool has(const char* flag) const { return given.contains(flag); }
  std::string value(const char* flag, const std::string& unset) const {
    const auto found = given.find(flag);
    return found == given.end() ? unset : found->second;
  }
};

struct Flag {
  std::string name;
  bool boolean = false;  // may stand without a value
  std::function<void(State&, const std::string& value)> use;
};

Flag setting(std::string name, const std::string& setting) {
  return {std::move(name), false,
          [setting](State& state, const std::string& value) { state.recipe.set(setting, quoted(value)); }};
}

Flag boolean(const std::string& name, const std::string& setting) {
  return {name, true, [name, setting](State& state, const std::string& value) {
            state.recipe.set(setting, is_true(name, value) ? "true" : "false");
          }};
}

// Without a meaning here; `is_boolean`: may stand without a value.
Flag ignored(const std::string& name, bool is_boolean, const std::string& reason) {
  return {name, is_boolean, [name, reason](State& state, const std::string&) {
            state.plan.notes.push_back(fmt::format("--{} has no meaning here: {}", name, reason));
          }};
}

// Cannot be honoured unless the value is one of `harmless`.
Flag refused(const std::string& name, bool is_boolean, const std::vector<std::string>& harmless, const std::string& reason) {
  return {name, is_boolean, [=](State&, const std::string& value) {
            if (std::ranges::find(harmless, value) == harmless.end())
              throw ConfigError("--{} {}: {}", name, value, reason);
          }};
}

void use_schedule(State& state, const std::string& value) {
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

void use_epochs(State& state, const std::string& value) {
  const auto epochs = parse_double(value);
  if (!epochs || *epochs < 1 || *epochs != static_cast<double>(static_cast<int64_t>(*epochs)))
    throw ConfigError(
        "--num_train_epochs {}: expected a whole number from 1; use --max_steps for a part of an epoch",
        value);
  state.recipe.set("training.epochs", std::to_string(static_cast<int64_t>(*epochs)));
}

void use_intervals(State& state, const char* setting, const std::string& strategy, const char* steps_flag,
                   const std::string& unset_steps) {
  if (strategy == "no") return state.recipe.set(setting, "never");
  if (strategy == "epoch") return state.recipe.set(setting, "epoch");
  if (strategy != "steps")
    throw ConfigError("{}: \"{}\" is not one of no, epoch, steps", steps_flag, strategy);
  state.recipe.set(setting, state.value(steps_flag, unset_steps));
}

const std::vector<Flag>& flags() {
  const auto store = [](auto member) {
    return [member](State& state, const std::string& value) { state.plan.*member = value; };
  };
  const auto stage = [](const std::string& name, bool ScriptPlan::*member) {
    return Flag{name, true,
                [=](State& state, const std::string& value) { state.plan.*member = is_true(name, value); }};
  };
  static const std::string local = "stretto downloads nothing, and executes no code of models";
  static const std::string packed = "batches are packed without padding";
  static const std::string built_in =
      "data is read and tokenised on all processors, once, and cached by its content";
  static const std::vector<Flag> table = {
      {"model_name_or_path", false, store(&ScriptPlan::model)},
      setting("tokenizer_name", "tokenizer.path"),
      {"config_name", false,
       [](State& state, const std::string& value) {
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
       [](State& state, const std::string& value) {
         if (const auto steps = parse_int(value); steps && *steps > 0)
           state.recipe.set("training.max_steps", value);
       }},
      setting("learning_rate", "optimizer.lr"),
      setting("weight_decay", "optimizer.weight_decay"),
      {"adam_beta1", false, [](State&, const std::string&) {}},  // together, in translate_script
      {"adam_beta2", false, [](State&, const std::string&) {}},
      setting("adam_epsilon", "optimizer.eps"),
      setting("max_grad_norm", "training.max_grad_norm"),
      {"lr_scheduler_type", false, use_schedule},
      {"warmup_ratio", false,
       [](State& state, const std::string& value) {
         if (parse_double(value).value_or(1) != 0 && !state.has("warmup_steps"))
           state.recipe.set("scheduler.warmup_ratio", value);
       }},
      {"warmup_steps", false,
       [](State& state, const std::string& value) { state.recipe.set("scheduler.num_warmup_steps", value); }},
      setting("seed", "training.seed"),
      {"fp16", true,
       [](State& state, const std::string& value) {
         if (!is_true("fp16", value)) return;
         state.recipe.set("training.precision", "bf16");
         state.plan.notes.emplace_back("--fp16: computed in bf16, with fp32 gradients and master weights");
       }},
      {"bf16", true,
       [](State& state, const std::string& value) {
         if (is_true("bf16", value)) state.recipe.set("training.precision", "bf16");
       }},
      {"no_cuda", true,
       [](State& state, const std::string& value) {
         if (is_true("no_cuda", value)) state.recipe.set("training.device", "cpu");
       }},
      {"use_cpu", true,
       [](State& state, const std::string& value) {
         if (is_true("use_cpu", value)) state.recipe.set("training.device", "cpu");
       }},
      {"gradient_checkpointing", true,
       [](State& state, const std::string& value) {
         if (is_true("gradient_checkpointing", value))
           state.recipe.set("training.activation_checkpointing", "1");
       }},
      setting("logging_steps", "track.log_every"),
      {"save_total_limit", false,
       [](State& state, const std::string& value) { state.recipe.set("checkpoint.keep_last", value); }},
      {"metric_for_best_model", false,
       [](State& state, const std::string& value) {
         state.recipe.set("checkpoint.monitor", quoted(value.starts_with("eval_") ? value.substr(5) : value));
       }},
      // Read together with other flags, in translate_script.
      {"eval_strategy", false, [](State&, const std::string&) {}},
      {"evaluation_strategy", false, [](State&, const std::string&) {}},
      {"eval_steps", false, [](State&, const std::string&) {}},
      {"save_strategy", false, [](State&, const std::string&) {}},
      {"save_steps", false, [](State&, const std::string&) {}},
      {"load_best_model_at_end", true, [](State&, const std::string&) {}},
      {"task_name", false,
       [](State& state, const std::string& value) {
         if (state.script == Script::glue)
           state.recipe.set("text_classification.glue_task", quoted(lower_case(value)));
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
      refused("max_train_samples", false, {}, "it is not supported; shorten the file (head -n)"),
      refused("max_eval_samples", false, {}, "it is not supported; shorten the file (head -n)"),
      refused("max_predict_samples", false, {}, "it is not supported; shorten the file (head -n)"),
      {"label_smoothing_factor", false,
       [](State& state, const std::string& value) {
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

const Flag& find_flag(const std::string& name) {
  std::vector<std::string> known;
  for (const Flag& flag : flags()) {
    if (flag.name == name) return flag;
    known.push_back(flag.name);
  }
  throw ConfigError("--{} is not a flag of this script that stretto knows{}", name,
                    did_you_mean(name, known));
}

// "--flag value", "--flag=value", "--flag" of a boolean. Dashes within names may be written for underscores.
std::map<std::string, std::string> parse_flags(const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) throw ConfigError("\"{}\" stands behind no flag; flags begin with --", word);
    const size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::ranges::replace(name, '-', '_');
    const Flag& flag = find_flag(name);
    const bool has_next = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
    std::string value = "true";
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (has_next) {
      value = arguments[++i];
    } else if (!flag.boolean) {
      throw ConfigError("--{} has no value", name);
    }
    given[name] = value;
  }
  return given;
}

void require_flag(const State& state, const char* flag, const char* why) {
  if (!state.has(flag)) throw ConfigError("--{} is required {}", flag, why);
}

// Defaults of the scripts that differ from those of recipes.
void set_defaults(State& state) {
  RecipeText& recipe = state.recipe;
  recipe.set("task", state.script == Script::glue  ? "text-classification"
                     : state.script == Script::ner ? "token-classification"
                                                   : "question-answering");
  recipe.set("data.max_length", state.script == Script::qa ? "384" : "128");
  if (state.script == Script::qa) recipe.set("question_answering.version_2_with_negative", "false");
  if (state.script == Script::ner) recipe.set("token_classification.long_sentences", "cut");
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
  State state{.script = script, .plan = {}, .recipe = {}, .given = parse_flags(arguments)};
  require_flag(state, "output_dir", "for the model and its results");
  require_flag(state, state.has("config_name") ? "config_name" : "model_name_or_path", "to start from");
  set_defaults(state);
  for (const auto& [name, value] : state.given) find_flag(name).use(state, value);
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
  state.recipe.set("output", quoted((plan.output_dir / "run").string()));
  plan.recipe = state.recipe.text();
  return std::move(state.plan);
}

}  // namespace stretto::foreign
