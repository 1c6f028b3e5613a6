#include "stretto/compat/llama_script.h"

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/llama_flags.h"

namespace stretto::compat {
namespace {

// Defaults of the script.
constexpr const char* default_lr = "4e-4";
constexpr int64_t default_warmup = 2000;

double number_value(const ScriptState& state, const std::string& flag, const std::string& unset) {
  const auto number = parse_double(state.value(flag, unset));
  if (!number || *number < 0) throw ConfigError("{}: expected a number from 0", state.text(flag));
  return *number;
}

void use_length(ScriptState& state) {
  const int64_t steps = count_value(state, "max_steps"), epochs = count_value(state, "num_train_epochs"),
                part = count_value(state, "steps_this_run");
  if (steps < 0 && epochs < 0)
    throw ConfigError(
        "--max_steps is required, the step at which the run and its schedule end; or --num_train_epochs");
  if (steps > 0) state.set_for("max_steps", "training.max_steps", std::to_string(steps));
  if (epochs > 0 && steps < 0) state.set_for("num_train_epochs", "training.epochs", std::to_string(epochs));
  if (epochs > 0 && steps > 0)
    state.plan.notes.push_back(fmt::format("{} has no effect: {} ends the run",
                                           state.text("num_train_epochs"), state.text("max_steps")));
  if (part < 0) return;
  if (steps > 0 && part > steps)
    throw ConfigError("{}: it is more than {}, at which the run ends; lower it, or remove it",
                      state.text("steps_this_run"), state.text("max_steps"));
  state.set_for("steps_this_run", "training.steps_this_run", std::to_string(part));
}

void use_batch(ScriptState& state) {
  const std::string batch = given_name(state, "train_batch_size", "batch_size");
  const LlamaDefaults defaults = llama_defaults(state);
  set_value(state, batch, "training.batch_size", std::to_string(defaults.batch_size));
  set_value(state, "grad_accum_usteps", "training.grad_accumulation_steps",
            std::to_string(defaults.grad_accum_usteps));
}

void use_optimizer_flags(ScriptState& state) {
  state.recipe.set("optimizer.type", "AdamW");
  set_value(state, "lr", "optimizer.lr", default_lr);
  set_value(state, "weight_decay", "optimizer.weight_decay", "0.01");
  const std::string betas =
      fmt::format("[{}, {}]", quoted(state.value("beta1", "0.9")), quoted(state.value("beta2", "0.999")));
  state.recipe.set_flag(state.has("beta2")   ? state.text("beta2")
                        : state.has("beta1") ? state.text("beta1")
                                             : "");
  state.recipe.set("optimizer.betas", betas);
  state.recipe.set_flag("");
}

// A flag of the cosine schedule, which the script ignores silently with the linear one.
void require_cosine(const ScriptState& state, const std::string& flag) {
  if (!state.has(flag) || parse_double(state.given.at(flag)) == 0.0) return;
  throw ConfigError("{}: the linear schedule ends at 0; pass --scheduler_type cosine, or remove it",
                    state.text(flag));
}

int64_t warmup_steps(const ScriptState& state) {
  const int64_t warmup = whole_value(state, "warmup_steps", default_warmup, 0),
                steps = count_value(state, "max_steps");
  if (steps < 0 || warmup <= steps) return warmup;
  throw ConfigError("--warmup_steps {}{}: the warm-up is longer than {}; pass a smaller number", warmup,
                    state.has("warmup_steps") ? "" : " (the default)", state.text("max_steps"));
}

void use_cosine(ScriptState& state) {
  const double lr = number_value(state, "lr", default_lr), lowest = number_value(state, "min_lr", "0");
  if (lowest > lr)
    throw ConfigError("{}: it is above the learning rate, --lr {}", state.text("min_lr"),
                      state.value("lr", default_lr));
  const int64_t warmup = warmup_steps(state), constant = whole_value(state, "constant_steps", 0, 0),
                steps = count_value(state, "max_steps");
  if (steps > 0 && warmup + constant > steps)
    throw ConfigError("--constant_steps {}: with --warmup_steps {} it is more than {}", constant, warmup,
                      state.text("max_steps"));
  state.recipe.set("scheduler.type", "CosineWithWarmup");
  if (lowest > 0) state.set_for("min_lr", "scheduler.min_lr", state.given.at("min_lr"));
  if (constant > 0) {
    state.set_for("constant_steps", "scheduler.constant_steps", std::to_string(constant));
  } else {  // NeMo's warm-up, which begins at the first of warmup + 1 equal parts
    state.recipe.set("scheduler.warmup_start", fmt::format("{}", 1 / static_cast<double>(warmup + 1)));
  }
}

void use_schedule_flags(ScriptState& state) {
  const std::string type = lower_case(state.value("scheduler_type", "linear"));
  if (type != "linear" && type != "cosine")
    throw ConfigError("{}: expected linear or cosine{}", state.text("scheduler_type"),
                      did_you_mean(type, std::vector<std::string>{"linear", "cosine"}));
  if (type == "cosine") {
    use_cosine(state);
  } else {
    require_cosine(state, "min_lr");
    require_cosine(state, "constant_steps");
    state.recipe.set("scheduler.type", "LinearWithWarmup");
  }
  set_value(state, "warmup_steps", "scheduler.num_warmup_steps", std::to_string(warmup_steps(state)));
}

void use_parallelism(ScriptState& state) {
  const std::string zero1 = given_name(state, "use_zero1_optimizer", "use_zero_1");
  if (state.is_true(zero1)) {
    state.set_for(zero1, "training.strategy", "zero1");
  } else {
    state.recipe.set("training.strategy", "ddp");
  }
  const std::string ranks =
      state.value("tensor_parallel_size", std::to_string(llama_defaults(state).tensor_parallel_size));
  state.recipe.set_flag("--tensor_parallel_size " + ranks);
  const bool rows = divides_rows(state) && ranks != "1";
  state.recipe.set("training.mesh",
                   fmt::format("{{tp: {}{}}}", quoted(ranks), rows ? ", sequence_parallel: true" : ""));
  state.recipe.set_flag("");
}

// The script computes in bf16 whatever its flags, which select how weights are stored.
void use_computation(ScriptState& state) {
  set_value(state, "precision", "training.precision", "bf16");
  const std::string selective = given_name(state, "use_selective_checkpoint", "selective_checkpoint_enabled");
  if (!state.is_true(selective)) return state.recipe.set("training.activation_checkpointing", "1");
  state.plan.notes.push_back(fmt::format(
      "--{}: all activations are kept but the weights of attention, which are always computed again in backward",
      selective));
}

void use_logs(ScriptState& state) {
  set_value(state, "logging_interval", "track.log_every", "1");
  state.recipe.set("track.throughput_steps", "10");
  state.recipe.set("track.trackers", "[jsonl, tensorboard, results]");
  const std::string folder = given_name(state, "tb_dir", "log_dir");
  if (!state.has(folder)) return;
  if (std::error_code failed; std::filesystem::is_regular_file(state.given.at(folder), failed))
    throw ConfigError("{}: it is a file; expected a folder", state.text(folder));
  set_value(state, folder, "track.logging_dir", "");
}

void use_run_folder(ScriptState& state) {
  state.plan.output_dir = state.value("output_dir", state.value("checkpoint_dir", "runs/llama"));
  state.plan.is_run_folder = true;
  state.plan.train = true;
}

}  // namespace

LlamaPlan translate_llama_script(const std::vector<std::string>& arguments) {
  ScriptState state{
      .script = Script::llama, .plan = {}, .recipe = {}, .given = parse_flags(llama_flags(), arguments)};
  state.use(llama_flags());
  state.recipe.set("task", "causal-lm");
  use_run_folder(state);
  use_llama_model(state);
  LlamaPlan plan;
  use_llama_data(state, plan);
  use_length(state);
  use_batch(state);
  use_optimizer_flags(state);
  use_schedule_flags(state);
  use_parallelism(state);
  use_computation(state);
  set_value(state, "seed", "training.seed", "12349");
  use_logs(state);
  use_llama_checkpoints(state);
  plan.loads_step = state.has("load_step");
  state.recipe.set_flag("--output_dir " + state.plan.output_dir.string());
  plan.script = finish_plan(state);
  return plan;
}

}  // namespace stretto::compat
