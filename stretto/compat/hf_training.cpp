#include <cmath>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/compat/hf_flags.h"

namespace stretto::compat {
namespace {

const std::string& find_name(const std::map<std::string, std::string>& names, const std::string& flag,
                             const std::string& value) {
  const auto found = names.find(lower_case(value));
  if (found != names.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, meaning] : names) known.push_back(name);
  throw ConfigError("--{} {}: it is not supported{}; expected one of {}", flag, value,
                    did_you_mean(value, known), fmt::join(known, ", "));
}

// Converts a number of steps, "500", or a part of all steps, "0.1", to an interval of a recipe.
std::string interval(const ScriptState& state, const std::string& flag, const std::string& value) {
  const auto number = parse_double(value);
  if (number && *number >= 1 && *number == std::floor(*number)) return fmt::format("{:.0f}", *number);
  if (!number || *number <= 0 || *number >= 1)
    throw ConfigError(
        "--{} {}: expected a whole number of steps from 1, or a part of all steps between 0 and 1", flag,
        value);
  const int64_t steps = parse_int(state.value("max_steps", "-1")).value_or(-1);
  if (steps > 0) return fmt::format("{:.0f}", std::ceil(*number * static_cast<double>(steps) - 1e-9));
  const double epochs = parse_double(state.value("num_train_epochs", "3")).value_or(3);
  return fmt::format("{:.9f}ep", *number * epochs);
}

// The two flags of an action at intervals: its strategy ("no", "epoch", "steps" or another) and its number of
// steps.
struct IntervalFlags {
  std::string strategy_flag, unset_strategy, steps_flag, unset_steps, setting;
};

// Returns the strategy.
std::string use_interval(ScriptState& state, const IntervalFlags& flags, const std::string& other = "") {
  const std::string strategy = lower_case(state.value(flags.strategy_flag, flags.unset_strategy));
  const bool given = state.has(flags.strategy_flag);
  const auto set = [&](const std::string& flag, const std::string& value) {
    state.recipe.set_flag(
        "--" + flag + " " +
        state.value(flag, flag == flags.steps_flag ? flags.unset_steps : flags.unset_strategy));
    state.recipe.set(flags.setting, value);
    state.recipe.set_flag("");
  };
  if (strategy == "steps") {
    const std::string steps = state.value(flags.steps_flag, flags.unset_steps);
    set(flags.steps_flag, interval(state, flags.steps_flag, steps));
  } else if (strategy == "no" || strategy == "epoch") {
    set(flags.strategy_flag, strategy == "no" ? "never" : "epoch");
  } else if (!given || other.empty() || strategy != other) {
    throw ConfigError("--{} {}: expected no, epoch{} steps", flags.strategy_flag,
                      state.value(flags.strategy_flag, ""),
                      other.empty() ? " or" : fmt::format(", {} or", other));
  }
  return strategy;
}

// Returns the name that the command line uses for a flag with several names.
std::string evaluation_flag(const ScriptState& state) {
  return state.has("evaluation_strategy") && !state.has("eval_strategy") ? "evaluation_strategy"
                                                                         : "eval_strategy";
}

// Converts min_lr, which is a rate in transformers and a fraction of lr in recipes.
double lowest_part(const ScriptState& state, const nlohmann::json& min_lr) {
  const auto lr = parse_double(state.value("learning_rate", "5e-5"));
  if (!min_lr.is_number() || !lr || *lr <= 0)
    throw ConfigError("{}: min_lr: found {}; expected a number", state.text("lr_scheduler_kwargs"),
                      min_lr.dump());
  return min_lr.get<double>() / *lr;
}

void use_schedule_settings(ScriptState& state) {
  const std::string flag = "lr_scheduler_kwargs";
  if (!state.has(flag)) return;
  const auto settings = nlohmann::json::parse(state.given.at(flag), nullptr, /*allow_exceptions=*/false);
  if (!settings.is_object())
    throw ConfigError("{}: expected a JSON object, such as {{\"num_cycles\": 2}}", state.text(flag));
  const bool to_part = state.value("lr_scheduler_type", "") == "cosine_with_min_lr";
  for (const auto& [name, value] : settings.items()) {
    if (to_part && name == "min_lr" && !value.is_null()) {
      state.set_for(flag, "scheduler.min_lr_rate", fmt::format("{}", lowest_part(state, value)));
    } else if (value.is_structured()) {
      throw ConfigError("{}: {}: found {}; expected a number or a text", state.text(flag), name,
                        value.dump());
    } else if (!value.is_null()) {
      state.set_for(flag, "scheduler." + name, value.dump());
    }
  }
}

void use_warmup(ScriptState& state) {
  const std::string type = lower_case(state.value("lr_scheduler_type", "linear"));
  const auto number = [&](const char* flag, double most) {
    const auto value = parse_double(state.value(flag, "0"));
    if (value && *value >= 0 && *value <= most && (*value < 1 || *value == std::floor(*value))) return *value;
    throw ConfigError("{}: expected {}", state.text(flag),
                      most == 1 ? "a part of all steps from 0 to 1"
                                : "a whole number of steps from 0, or a part of all steps below 1");
  };
  const double ratio = number("warmup_ratio", 1), steps = number("warmup_steps", 1e9);
  const char* const flag = steps > 0 ? "warmup_steps" : "warmup_ratio";
  if (steps == 0 && ratio == 0) return;
  if (type == "constant" || type == "reduce_lr_on_plateau")
    return state.plan.notes.push_back(
        fmt::format("--{} does not apply with --lr_scheduler_type {}, which has no warm-up", flag, type));
  if (steps >= 1) return state.set_for(flag, "scheduler.num_warmup_steps", fmt::format("{:.0f}", steps));
  state.set_for(flag, "scheduler.warmup_ratio", state.given.at(flag));
}

}  // namespace

void use_optimizer(ScriptState& state) {
  static const std::map<std::string, std::string> names = {
      {"adamw_torch", "AdamW"}, {"adamw_torch_fused", "AdamW"},
      {"adamw_hf", "AdamW"},    {"adafactor", "Adafactor"},
      {"sgd", "SGD"},           {"adagrad", "Adagrad"},
      {"rmsprop", "RMSprop"}};
  std::string type = "AdamW";
  if (state.has("optim")) {
    type = find_name(names, "optim", state.given.at("optim"));
    state.set_for("optim", "optimizer.type", type);
  }
  if (state.is_true("adafactor")) {
    type = "Adafactor";
    state.set_for("adafactor", "optimizer.type", type);
  }
  // Corresponds to transformers' scale_parameter=False: steps do not scale with the size of the weights.
  if (type == "Adafactor") state.recipe.set("optimizer.eps", "[0, 1]");
  if (type == "AdamW") {
    const auto set = [&](const char* flag, const char* setting, const std::string& value) {
      if (state.has(flag)) state.set_for(flag, setting, value);
    };
    const std::string betas =
        fmt::format("[{}, {}]", state.value("adam_beta1", "0.9"), state.value("adam_beta2", "0.999"));
    set("adam_beta1", "optimizer.betas", betas);
    set("adam_beta2", "optimizer.betas", betas);
    set("adam_epsilon", "optimizer.eps", quoted(state.value("adam_epsilon", "")));
    return;
  }
  for (const char* flag : {"adam_beta1", "adam_beta2", "adam_epsilon"})
    if (state.has(flag)) state.plan.notes.push_back(fmt::format("--{} does not apply with {}", flag, type));
}

void use_schedule(ScriptState& state) {
  static const std::map<std::string, std::string> names = {
      {"linear", "LinearWithWarmup"},
      {"constant", "Constant"},
      {"constant_with_warmup", "ConstantWithWarmup"},
      {"cosine", "CosineWithWarmup"},
      {"cosine_with_min_lr", "CosineWithWarmup"},
      {"cosine_with_restarts", "CosineWithHardRestartsWithWarmup"},
      {"polynomial", "PolynomialDecayWithWarmup"},
      {"inverse_sqrt", "InverseSQRT"},
      {"reduce_lr_on_plateau", "ReduceLROnPlateau"}};
  const std::string flag = "lr_scheduler_type";
  if (state.has(flag)) state.set_for(flag, "scheduler.type", find_name(names, flag, state.given.at(flag)));
  use_schedule_settings(state);
  use_warmup(state);
}

void use_intervals(ScriptState& state) {
  use_interval(state, {"logging_strategy", "steps", "logging_steps", "500", "track.log_every"});
  const std::string logging_steps = state.value("logging_steps", "500");
  const std::string flag = evaluation_flag(state);
  const bool evaluates =
      use_interval(state, {flag, "no", "eval_steps", logging_steps, "evaluate.every"}) != "no";
  if (evaluates && !state.plan.validation)  // run-clm may validate on a part of --train_file
    require_flag(state, "validation_file", ("to evaluate while training (" + state.text(flag) + ")").c_str());
  const std::string saving =
      use_interval(state, {"save_strategy", "steps", "save_steps", "500", "checkpoint.every"}, "best");
  if (saving == "best") {
    if (!evaluates)
      throw ConfigError("--save_strategy best: nothing is evaluated; pass --eval_strategy steps or epoch");
    state.set_for("save_strategy", "checkpoint.every", "eval");
    state.recipe.set("checkpoint.keep_best", "1");
    state.plan.notes.emplace_back(
        "--save_strategy best: each evaluation saves a checkpoint; the best and the newest are kept, and the best model");
  }
  const bool loads_best = state.is_true("load_best_model_at_end");
  if (loads_best && !evaluates)
    throw ConfigError("{}: nothing is evaluated; pass --eval_strategy steps or epoch",
                      state.text("load_best_model_at_end"));
  if (evaluates && !loads_best)
    state.plan.notes.emplace_back(
        "the best model is kept, as with --load_best_model_at_end, not the last one");
}

}  // namespace stretto::compat
