#include <algorithm>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/evaluation.h"
#include "stretto/config/mixture.h"
#include "stretto/config/model_json.h"
#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/settings/check_settings.h"
#include "stretto/settings/describe.h"
#include "stretto/track/registry.h"
#include "stretto/weights/hub_cache.h"

namespace stretto {
namespace {

using OptionalPath = std::optional<std::filesystem::path>;

// Returns a hint for a setting that may name a model of the hub.
std::string download_hint(const std::string& setting, const std::filesystem::path& path) {
  return setting == "model.path" || setting == "tokenizer.path" ? hub::pull_hint(path) : "";
}

// Whether the setting may be a folder: models, tokenizers and, for some tasks, data.
bool may_be_folder(const Recipe& recipe, const std::string& setting) {
  return setting == "model.path" || setting == "tokenizer.path" ||
         (setting.starts_with("data.") && task_kind(recipe).reads_corpora);
}

// Throws ConfigError unless `path` exists and is a file, or a folder where that may be.
void require_file(const Recipe& recipe, const std::string& setting, const std::filesystem::path& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (std::filesystem::exists(status)) {
    if (std::filesystem::is_regular_file(status) || may_be_folder(recipe, setting)) return;
    throw ConfigError("{}: {} is {}; expected a file", recipe.origins.label(setting), path.string(),
                      std::filesystem::is_directory(status)
                          ? "a folder"
                          : "a pipe or a device, which cannot be mapped; write the content to a file first");
  }
  if (failed && status.type() != std::filesystem::file_type::not_found) {
    throw ConfigError("{}: {} cannot be accessed: {}", recipe.origins.label(setting), path.string(),
                      failed.message());
  }
  throw ConfigError("{}: {} does not exist (relative paths start at the working directory){}",
                    recipe.origins.label(setting), path.string(), download_hint(setting, path));
}

void require_path(const Recipe& recipe, const std::string& setting, const OptionalPath& path,
                  const std::string& why) {
  if (!path)
    throw ConfigError("{} is required {}; add it to the recipe, or pass --set {}=...", setting, why, setting);
  require_file(recipe, setting, *path);
}

// A new model must be of the recipe's task, and it makes its own tokenizer.
void check_maker(const Recipe& recipe, const TaskKind& maker) {
  const auto& origins = recipe.origins;
  const char* const chosen = recipe.model.type ? "model.type" : "model.config";
  if (recipe.task != maker.name)
    throw ConfigError("{}: a {} is for the task {}; {} is {}", origins.label(chosen), maker.new_model->type,
                      maker.name, origins.mention("task"), recipe.task);
  for (const char* other : {"tokenizer.path", "tokenizer.lowercase", "tokenizer.add_prefix_space"}) {
    if (origins.given(other))
      throw ConfigError("{}: a new {} makes its own tokenizer; remove this, or {}", origins.label(other),
                        maker.new_model->type, origins.mention(chosen));
  }
}

// A type that only another task takes is refused together with its settings.
void check_type(const Recipe& recipe, const std::string& type) {
  const std::vector<std::string> all = model_types(), of_task = model_types(task_kind(recipe));
  if (std::ranges::find(all, type) != all.end()) return;
  const std::vector<std::string>& expected = of_task.empty() ? all : of_task;
  throw ConfigError("{}: \"{}\" is not one of {}{}", recipe.origins.label("model.type"), type,
                    fmt::join(expected, ", "), did_you_mean(type, expected));
}

void check_model(const Recipe& recipe) {
  const ModelConfig& model = recipe.model;
  if (model.type) check_type(recipe, *model.type);
  if (model.path && model.config) {
    throw ConfigError(
        "{}: a model is either loaded from a folder or created from a config.json with random weights; remove this or {}",
        recipe.origins.label("model.config"), recipe.origins.mention("model.path"));
  }
  const TaskKind* const maker = maker_of(model);
  if (model.type) {
    for (const char* other : {"model.path", "model.config"}) {
      if (!recipe.origins.given(other) || (maker == nullptr && model.config)) continue;
      throw ConfigError("{}: {} is a new model with random weights; remove this or {}",
                        recipe.origins.label(other), *model.type, recipe.origins.mention("model.type"));
    }
    if (maker == nullptr && !model.config) {
      throw ConfigError(
          "{}: the sizes of the model are missing; set model.config to a section of keys of config.json, such as {{hidden_size: 256}}, or to the path of a file",
          recipe.origins.label("model.type"));
    }
  }
  if (maker != nullptr) check_maker(recipe, *maker);
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model) kind.new_model->check(recipe);
  if (maker != nullptr) return;
  if (model.config && model.config->is_section()) {
    check_model_section(recipe);
  } else if (model.config) {
    require_file(recipe, "model.config", model.config->file);
    if (model.type) read_model_json(model);
  } else {
    require_path(recipe, "model.path", model.path, "(or model.config, for random weights)");
  }
  require_path(recipe, "tokenizer.path", recipe.tokenizer.path,
               fmt::format("if model.path is not set and model.config is not of model_type {}",
                           fmt::join(new_model_types(), " or ")));
}

// A run moves the earlier one in its folder aside, or removes it, before it writes a model.
void check_start(const Recipe& recipe) {
  std::error_code failed;
  const auto output = std::filesystem::weakly_canonical(recipe.output, failed);
  for (const auto& [setting, path] :
       {std::pair("model.path", recipe.model.path), {"tokenizer.path", recipe.tokenizer.path}}) {
    if (!path) continue;
    const auto inside = std::filesystem::weakly_canonical(*path, failed).lexically_relative(output);
    const std::string first = inside.empty() ? "" : inside.begin()->string();
    if (first != "model" && first != "models" && first != "checkpoints") continue;
    throw ConfigError(
        "{}: {} is in the output folder, {}, whose models a new run replaces; choose another {}",
        recipe.origins.label(setting), path->string(), recipe.output.string(),
        recipe.origins.mention("output"));
  }
}

bool has_warmup(SchedulerConfig scheduler) {
  const auto fields = settings::fields_of(scheduler);
  const settings::Field* field = settings::declaration_in_use(fields, "num_warmup_steps");
  return field != nullptr && field->rule.in_use();
}

// Checks a section whose settings depend on its type.
void check_choice(const Recipe& recipe, const std::string& section, const settings::Choice& choice) {
  try {
    choice.check();
  } catch (const settings::SettingError& error) {
    throw ConfigError("{}: {}", recipe.origins.label(section + "." + error.key, section + ".type"),
                      error.problem);
  }
}

// Checks the warm-up that is given in samples: it replaces the schedule's own settings and requires a fixed
// global batch.
void check_warmup_samples(const Recipe& recipe) {
  if (!recipe.scheduler.num_warmup_samples) return;
  const auto& origins = recipe.origins;
  const std::string place = origins.label("scheduler.num_warmup_samples");
  if (!has_warmup(recipe.scheduler))
    throw ConfigError("{}: {} has no warm-up; remove this, or change {}", place, recipe.scheduler.type,
                      origins.mention("scheduler.type"));
  for (const char* other : {"num_warmup_steps", "warmup_ratio"}) {
    if (recipe.scheduler.value(other).is_null()) continue;
    throw ConfigError("{}: the warm-up is set twice; remove this or {}", place,
                      origins.mention(std::string("scheduler.") + other));
  }
  if (recipe.training.max_tokens)
    throw ConfigError(
        "{}: the number of samples per step varies with {}; use num_warmup_steps or warmup_ratio", place,
        origins.mention("training.max_tokens"));
}

void check_average(const Recipe& recipe) {
  if (recipe.ema.decay || (!recipe.ema.warmup && recipe.ema.evaluate)) return;
  throw ConfigError("{}: it has no effect without ema.decay; set ema.decay, such as 0.999",
                    recipe.origins.label(recipe.ema.warmup ? "ema.warmup" : "ema.evaluate"));
}

void check_loss_scale(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  LossScaleConfig scale = recipe.loss_scale, defaults;
  const auto fields = settings::fields_of(scale), unset = settings::fields_of(defaults);
  for (size_t i = 0; i < fields.size() && recipe.training.precision != Precision::fp16; ++i) {
    if (settings::value_of(fields[i]) == settings::value_of(unset[i])) continue;
    throw ConfigError("{}: it applies to fp16; {} is {}; remove one",
                      origins.label("loss_scale." + fields[i].key), origins.mention("training.precision"),
                      recipe.training.precision);
  }
  if (scale.min_scale > scale.init_scale) {
    throw ConfigError("{}: {} is above {}, which is {}", origins.label("loss_scale.min_scale"),
                      scale.min_scale, origins.mention("loss_scale.init_scale"), scale.init_scale);
  }
}

void check_lr_scale(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  const OptimizerConfig& optimizer = recipe.optimizer;
  if (optimizer.scale_lr == LrScale::none) {
    if (!optimizer.base_batch_size) return;
    throw ConfigError("{}: it has no effect with scale_lr: none; set optimizer.scale_lr to linear or sqrt",
                      origins.label("optimizer.base_batch_size"));
  }
  const std::string place = origins.label("optimizer.scale_lr");
  if (!optimizer.base_batch_size)
    throw ConfigError("{}: {} needs optimizer.base_batch_size, the global batch size for which lr is given",
                      place, optimizer.scale_lr);
  if (recipe.training.max_tokens)
    throw ConfigError("{}: the global batch size varies with {}; set training.global_batch_size instead",
                      place, origins.mention("training.max_tokens"));
  if (recipe.scheduler.type == "OneCycleLR" || recipe.scheduler.type == "CyclicLR")
    throw ConfigError("{}: {} sets the rates itself, by max_lr; scale max_lr, or use another scheduler",
                      place, recipe.scheduler.type);
}

void check_scheduler(const Recipe& recipe) {
  check_warmup_samples(recipe);
  check_lr_scale(recipe);
  const auto& origins = recipe.origins;
  const nlohmann::json warmup = recipe.scheduler.value("num_warmup_steps");
  if (!warmup.is_null() && !recipe.scheduler.value("warmup_ratio").is_null()) {
    throw ConfigError("{}: the warm-up is set twice; remove this or {}",
                      origins.label("scheduler.warmup_ratio"), origins.mention("scheduler.num_warmup_steps"));
  }
  const auto& max_steps = recipe.training.max_steps;
  if (!warmup.is_null() && max_steps && warmup.get<int64_t>() > *max_steps) {
    throw ConfigError("{}: a warm-up of {} is longer than {}, which is {}",
                      origins.label("scheduler.num_warmup_steps"), counted(warmup.get<int64_t>(), "step"),
                      origins.mention("training.max_steps"), *max_steps);
  }
  check_choice(recipe, "scheduler", recipe.scheduler);
}

void check_mixture(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  const std::string place = origins.label("data.mixture");
  if (!task_kind(recipe).reads_corpora) {
    throw ConfigError("{}: only the task {} reads a mixture; {} is {}; set data.train to a file", place,
                      tasks_with([](const TaskKind& kind) { return kind.reads_corpora; }),
                      origins.mention("task"), recipe.task);
  }
  if (recipe.data.train)
    throw ConfigError("{}: there are training samples already; remove this or {}", place,
                      origins.mention("data.train"));
  for (const auto& [part, instead] : {std::pair("data.validation_split", "data.validation"),
                                      {"data.max_train_samples", "training.max_samples"}}) {
    if (!origins.given(part)) continue;
    throw ConfigError("{}: it takes a part of data.train, but {} is set; set {} instead", origins.label(part),
                      origins.mention("data.mixture"), instead);
  }
  for (const MixturePart& part : mixture_of(recipe)) require_file(recipe, "data.mixture", part.path);
}

void check_rows(const Recipe& recipe) {
  const MeshConfig& mesh = recipe.training.mesh;
  if (!mesh.sequence_parallel || mesh.tp > 1) return;
  throw ConfigError(
      "{}: rows are divided among the ranks of each layer, and {} is 1; set it to 2 or more, or remove this",
      recipe.origins.label("training.mesh.sequence_parallel"), recipe.origins.mention("training.mesh.tp"));
}

void check_mesh(const Recipe& recipe) {
  if (recipe.training.mesh.tp == 1 || task_kind(recipe).divides_models) return;
  throw ConfigError(
      "{}: {} is {}, whose models cannot be divided among ranks, unlike those of {}; remove this",
      recipe.origins.label("training.mesh.tp"), recipe.origins.mention("task"), recipe.task,
      tasks_with(&TaskKind::divides_models));
}

void check_files(const Recipe& recipe) {
  if (!recipe.data.mixture.empty()) {
    check_mixture(recipe);
  } else {
    require_path(recipe, "data.train", recipe.data.train, "by stretto train");
  }
  if (recipe.data.test) require_file(recipe, "data.test", *recipe.data.test);
  if (recipe.data.validation_split && !task_kind(recipe).draws_validation) {
    throw ConfigError(
        "{}: only the task {} draws validation samples from the training samples; {} is {}; set data.validation to a file",
        recipe.origins.label("data.validation_split"), tasks_with(&TaskKind::draws_validation),
        recipe.origins.mention("task"), recipe.task);
  }
  if (recipe.data.validation_split && recipe.data.validation) {
    throw ConfigError("{}: there are validation samples already; remove this or {}",
                      recipe.origins.label("data.validation_split"),
                      recipe.origins.mention("data.validation"));
  }
  if (recipe.data.max_validation_samples && !recipe.data.validation) {
    throw ConfigError("{}: it limits data.validation, which is not set; remove this, or set data.validation",
                      recipe.origins.label("data.max_validation_samples"));
  }
  if (recipe.data.validation) require_file(recipe, "data.validation", *recipe.data.validation);
}

void check_checkpoint(const Recipe& recipe) {
  const TrainingConfig& training = recipe.training;
  for (const auto& [name, rolls_back] :
       {std::pair("training.on_nonfinite", training.on_nonfinite == OnNonfinite::rollback),
        {"training.on_spike", training.on_spike == OnSpike::rollback}}) {
    if (!rolls_back || !recipe.checkpoint.every.never()) continue;
    throw ConfigError("{}: rollback requires checkpoints; set checkpoint.every", recipe.origins.label(name));
  }
  const nlohmann::json compared = computing_settings(recipe);
  std::vector<std::string> names = {"data.validation"};  // settings of files whose contents are compared
  for (const auto& [name, value] : compared.items()) names.push_back(name);
  for (const std::string& name : recipe.checkpoint.accept_changes) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw ConfigError("{}: {} is not among the settings that are compared when a run is resumed{}",
                      recipe.origins.label("checkpoint.accept_changes"), name, did_you_mean(name, names));
  }
}

void check_offload(const Recipe& recipe, const char* setting,
                   const std::optional<std::filesystem::path>& folder, const char* content) {
  if (!folder || *folder == in_output_folder) return;
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(*folder, failed);
  if (is_folder && ::access(folder->c_str(), W_OK | X_OK) == 0) return;
  throw ConfigError("{}: {} {}; expected a folder on a disk of each host, with room for {}",
                    recipe.origins.label(setting), folder->string(),
                    is_folder                                  ? "cannot be written to"
                    : std::filesystem::exists(*folder, failed) ? "is a file"
                                                               : "does not exist",
                    content);
}

void check_output(const Recipe& recipe) {
  std::error_code failed;
  if (std::filesystem::exists(recipe.output / "config.json", failed)) {
    throw ConfigError(
        "{}: {} is a model folder, as it holds a config.json; expected the folder of a run, which holds its model in model/",
        recipe.origins.label("output"), recipe.output.string());
  }
  std::filesystem::path there = recipe.output;  // or its nearest parent that exists
  while (!std::filesystem::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  if (!std::filesystem::exists(there, failed) || std::filesystem::is_directory(there, failed)) return;
  throw ConfigError("{}: {} is a file; expected a folder, which is created if it does not exist",
                    recipe.origins.label("output"), there.string());
}

void check_track(const Recipe& recipe) {
  const TrackerSetup setup = tracker_setup(recipe);
  const auto uses = [&](const char* name) {
    return std::ranges::find(recipe.track.trackers, name) != recipe.track.trackers.end();
  };
  if (setup.has_url() && !uses("mlflow")) {
    throw ConfigError(
        "{}: {} is the URL of a server, but track.trackers has no mlflow; add it, or set a folder",
        recipe.origins.label("track.logging_dir"), *setup.logging_dir);
  }
  if (setup.name_of_run().empty() || setup.name_of_run().find('/') != std::string::npos) {
    throw ConfigError("{}: \"{}\" is not a name; expected one without \"/\"",
                      recipe.origins.label("track.run_name"), setup.name_of_run());
  }
  const Interval& histograms = recipe.track.histograms;
  if (histograms.unit() == Interval::Unit::seconds || histograms.unit() == Interval::Unit::evaluations) {
    throw ConfigError("{}: {} is not an interval of steps (500) or epochs (2ep)",
                      recipe.origins.label("track.histograms"), histograms.text());
  }
  if (!histograms.never() && !uses("tensorboard")) {
    throw ConfigError("{}: only tensorboard shows histograms; add it to track.trackers, or remove this",
                      recipe.origins.label("track.histograms"));
  }
  for (const std::string& tag : recipe.track.tags) {
    if (tag.find('=') == std::string::npos || tag.front() == '=')
      throw ConfigError("{}: \"{}\" is not KEY=VALUE", recipe.origins.label("track.tags"), tag);
  }
  for (const std::string& name : recipe.track.trackers) {
    const TrackerKind& kind = find_tracker(name);
    try {
      if (kind.check) kind.check(setup);
    } catch (const ConfigError& error) {
      throw ConfigError("{}: {}", recipe.origins.label("track.trackers"), error.what());
    }
  }
}

// Throws ConfigError if the model that `stretto test` loads does not exist.
void check_trained_model(const Recipe& recipe) {
  const std::filesystem::path model = recipe.output / "model";
  std::error_code ignored;
  if (std::filesystem::exists(model / "config.json", ignored)) return;
  throw ConfigError("{}: there is no trained model in {}; run `stretto train` with this recipe first",
                    recipe.origins.label("output"), model.string());
}

}  // namespace

// LBFGS compares gradients with changes of the loss, so they must not be modified.
void require_whole_gradients(const Recipe& recipe, const std::string& optimizer) {
  const TrainingConfig& training = recipe.training;
  if (training.precision == Precision::fp16) {
    throw ConfigError("{}: {} evaluates a batch several times with one loss scale; use bf16 or fp32",
                      recipe.origins.label("training.precision"), optimizer);
  }
  if (training.max_grad_norm <= 0 && !training.max_grad_value) return;
  throw ConfigError(
      "{}: {} compares gradients with changes of the loss, so it cannot use clipped gradients; set training.max_grad_norm to 0 and remove max_grad_value",
      recipe.origins.label(training.max_grad_value ? "training.max_grad_value" : "training.max_grad_norm"),
      optimizer);
}

void check_recipe(const Recipe& recipe, Verb verb) {
  check_output(recipe);
  const TaskKind& task = task_kind(recipe);
  if (task.check) task.check(recipe);
  // A program of one's own may make another optimizer than the recipe's.
  if (verb == Verb::train && optim::optimizers().at(recipe.optimizer.type, "optimizer.type").reevaluates)
    require_whole_gradients(recipe, recipe.optimizer.type);
  check_rows(recipe);
  if (verb != Verb::fit) check_mesh(recipe);
  if (verb == Verb::train && !task.head.empty()) {
    check_model(recipe);
    check_start(recipe);
  }
  if (verb == Verb::test) {
    require_path(recipe, "data.test", recipe.data.test, "by stretto test");
    check_trained_model(recipe);
    return;
  }
  if (verb == Verb::train) {
    check_files(recipe);
    require_evaluated_samples(recipe);
  }
  check_offload(recipe, "training.offload_optimizer", recipe.training.offload_optimizer,
                "the optimizer's state");
  check_offload(recipe, "training.offload_parameters", recipe.training.offload_parameters, "the parameters");
  check_evaluation(recipe);
  check_average(recipe);
  check_loss_scale(recipe);
  check_choice(recipe, "optimizer", recipe.optimizer);
  check_scheduler(recipe);
  check_checkpoint(recipe);
  check_track(recipe);
}

}  // namespace stretto
