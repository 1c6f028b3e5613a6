#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/config/choices.h"
#include "stretto/config/interval.h"
#include "stretto/config/task_kind.h"
#include "stretto/settings/choice.h"
#include "stretto/settings/fields.h"
#include "stretto/settings/read.h"
#include "stretto/strategy/compute_options.h"

namespace stretto {

struct Input;         // base/inputs.h
struct TrackerSetup;  // track/registry.h

// A recipe: the settings of a training run, one struct per section of the YAML file. Meaning, range and
// default of each setting are declared once, in recipe.cpp; `stretto help` prints them. An unset optional is
// determined later: by resolve(), by the data, or by the world size. A OneOf is an enum (config/choices.h),
// to which programs may assign a name too: recipe.training.precision = "bf16".

struct ModelConfig {
  std::optional<std::filesystem::path> path = std::nullopt;      // a Hugging Face folder
  std::optional<settings::FileOrSection> config = std::nullopt;  // or a config.json only: random weights
  // The model_type of `config`; without `config`, a new model with the settings of the section of this name.
  std::optional<std::string> type = std::nullopt;
  std::optional<double> dropout = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const ModelConfig&) const = default;
};

struct TokenizerConfig {
  std::optional<std::filesystem::path> path = std::nullopt;
  std::optional<bool> lowercase = std::nullopt;
  std::optional<bool> add_prefix_space = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const TokenizerConfig&) const = default;
};

struct DataConfig {
  std::optional<std::filesystem::path> train = std::nullopt;
  std::vector<std::string> mixture = {};  // mixture_of()
  std::optional<std::filesystem::path> validation = std::nullopt;
  std::optional<double> validation_split = std::nullopt;
  std::optional<std::filesystem::path> test = std::nullopt;
  std::optional<int64_t> max_train_samples = std::nullopt;
  std::optional<int64_t> max_validation_samples = std::nullopt;
  std::optional<int64_t> max_test_samples = std::nullopt;
  std::optional<std::string> text = std::nullopt;
  std::optional<std::string> text_pair = std::nullopt;
  std::optional<std::string> label = std::nullopt;
  std::optional<std::string> encoding = std::nullopt;
  int64_t max_length = 128;
  int64_t pad_to_multiple_of = 16;
  std::optional<std::filesystem::path> cache = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const DataConfig&) const = default;
};

// The arrangement of the ranks of a run (strategy/mesh_shape.h).
struct MeshConfig {
  std::string dp = "auto";
  int64_t tp = 1;
  int64_t pp = 1, cp = 1;
  bool sequence_parallel = false;

  std::optional<int64_t> data_ranks() const;  // dp; nullopt: auto
  void fields(settings::Fields& field);
  bool operator==(const MeshConfig&) const = default;
};

struct TrainingConfig {
  double epochs = 3;
  std::optional<int64_t> max_steps = std::nullopt;
  std::optional<int64_t> max_samples = std::nullopt;
  std::optional<int64_t> fast_dev_run = std::nullopt;
  std::optional<int64_t> steps_this_run = std::nullopt;
  std::optional<std::string> max_time = std::nullopt;  // parse_duration()
  std::optional<int64_t> batch_size = std::nullopt;
  std::optional<int64_t> global_batch_size = std::nullopt;
  std::optional<int64_t> grad_accumulation_steps = std::nullopt;
  std::optional<int64_t> max_tokens = std::nullopt;
  double max_grad_norm = 1.0;
  std::optional<double> max_grad_value = std::nullopt;
  settings::OneOf<Precision> precision = Precision::fp32;
  std::string strategy = "ddp";
  MeshConfig mesh = {};
  int64_t seed = 42;
  settings::OneOf<DeviceChoice> device = DeviceChoice::automatic;
  std::string backend = "auto";
  settings::OneOf<KernelChoice> kernels = KernelChoice::fast;
  settings::OneOf<Products> products = Products::automatic;
  bool deterministic = false;
  double bucket_mb = 25;
  settings::OneOf<SharedParameters> shared_parameters = SharedParameters::automatic;
  std::optional<int64_t> dp_shard = std::nullopt;
  bool reshard_after_forward = true;
  int64_t wrap_min_parameters = 0;
  std::optional<std::filesystem::path> offload_optimizer = std::nullopt;
  std::optional<std::filesystem::path> offload_parameters = std::nullopt;
  int64_t activation_checkpointing = 0;
  bool shuffle = true;
  settings::OneOf<OnNonfinite> on_nonfinite = OnNonfinite::stop;
  settings::OneOf<OnSpike> on_spike = OnSpike::off;
  double spike_factor = 10;
  double rollback_lr_factor = 0.5;

  void fields(settings::Fields& field);
  bool operator==(const TrainingConfig&) const = default;
};

// optimizer: a type and its settings (optim_config/optimizers/). Programs may assign either:
//   recipe.optimizer = optim::SgdOptions{.lr = 0.1};
//   recipe.optimizer.as<optim::SgdOptions>().momentum = 0.9;
struct OptimizerConfig : settings::Choice {
  OptimizerConfig();
  settings::OneOf<LrScale> scale_lr = LrScale::none;
  std::optional<int64_t> base_batch_size = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const OptimizerConfig&) const = default;
  template <class Options>
  requires(!std::derived_from<Options, settings::Choice>) OptimizerConfig& operator=(const Options& options) {
    choose(options);
    return *this;
  }
};

// scheduler: a type and its settings (optim_config/schedule_registry.h), which programs assign in the same
// way.
struct SchedulerConfig : settings::Choice {
  SchedulerConfig();
  std::optional<int64_t> num_warmup_samples = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const SchedulerConfig&) const = default;
  template <class Options>
  requires(!std::derived_from<Options, settings::Choice>) SchedulerConfig& operator=(const Options& options) {
    choose(options);
    return *this;
  }
};

struct CheckpointConfig {
  std::optional<std::string> monitor = std::nullopt;
  settings::OneOf<MetricMode> mode = MetricMode::automatic;
  Interval every = {};
  int64_t keep_last = 2;
  int64_t keep_best = 0;
  std::optional<int64_t> keep_every = std::nullopt;
  bool async = true;
  settings::OneOf<WhenBusy> when_busy = WhenBusy::wait;
  std::vector<std::string> accept_changes = {};
  bool allow_nonfinite = false;
  std::vector<std::string> save_models = {};
  double folder_patience = 5;  // seconds

  std::chrono::milliseconds wait_for_folder() const {
    return std::chrono::milliseconds(static_cast<int64_t>(1000 * folder_patience));
  }
  void fields(settings::Fields& field);
  bool operator==(const CheckpointConfig&) const = default;
};

struct EvaluateConfig {
  Interval every = "epoch";
  std::optional<int64_t> first_by = std::nullopt;
  bool at_start = false;
  std::optional<int64_t> batch_size = std::nullopt;
  std::optional<int64_t> max_samples = std::nullopt;
  int64_t sanity_steps = 0;
  bool by_class = false;
  bool async = false;
  std::vector<std::string> samples = {};

  void fields(settings::Fields& field);
  bool operator==(const EvaluateConfig&) const = default;
};

// Ends a run depending on a metric of its evaluations.
struct EarlyStoppingConfig {
  std::optional<int64_t> patience = std::nullopt;
  std::optional<std::string> monitor = std::nullopt;
  settings::OneOf<MetricMode> mode = MetricMode::automatic;
  double min_delta = 0;
  std::optional<double> stopping_threshold = std::nullopt;
  std::optional<double> divergence_threshold = std::nullopt;
  bool check_finite = true;

  bool in_use() const { return patience || stopping_threshold || divergence_threshold; }
  void fields(settings::Fields& field);
  bool operator==(const EarlyStoppingConfig&) const = default;
};

// Settings of parameters by their names in the model; * stands for any text.
struct ParametersConfig {
  std::vector<std::string> freeze = {};
  std::vector<std::string> lr_factors = {};
  std::vector<std::string> weight_decay = {};
  std::vector<std::string> no_weight_decay = {};
  std::optional<double> layer_decay = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const ParametersConfig&) const = default;
};

// Exponential moving average of the weights.
struct EmaConfig {
  std::optional<double> decay = std::nullopt;  // unset: none
  bool warmup = false;
  bool evaluate = true;

  void fields(settings::Fields& field);
  bool operator==(const EmaConfig&) const = default;
};

// The loss scale of training.precision: fp16.
struct LossScaleConfig : LossScaleOptions {
  void fields(settings::Fields& field);
  bool operator==(const LossScaleConfig&) const = default;
};

struct TrackConfig {
  Interval log_every = 10;
  std::optional<int64_t> throughput_steps = std::nullopt;
  settings::OneOf<ProgressDisplay> progress = ProgressDisplay::automatic;
  std::vector<std::string> trackers = {"jsonl", "tensorboard"};
  std::optional<std::string> logging_dir = std::nullopt;
  std::optional<std::string> experiment = std::nullopt;
  std::optional<std::string> run_name = std::nullopt;
  std::vector<std::string> tags = {};
  Interval histograms = {};

  void fields(settings::Fields& field);
  bool operator==(const TrackConfig&) const = default;
};

// Settings declared by a program; their values are stored in the program's own struct.
struct ProgramFields {
  std::vector<settings::Field> list = {};

  bool operator==(const ProgramFields& other) const;  // by value
};

// What resolve() has decided and a user may not expect, a line each. Recipes are compared without it.
struct Remarks {
  std::vector<std::string> lines = {};

  bool operator==(const Remarks&) const { return true; }
};

struct Recipe {
  std::string task = task_kinds().entries().front().name;
  ModelConfig model = {};
  TokenizerConfig tokenizer = {};
  DataConfig data = {};
  TaskSettings task_settings = {};  // the sections of tasks (config/tasks)
  TrainingConfig training = {};
  OptimizerConfig optimizer = {};
  SchedulerConfig scheduler = {};
  LossScaleConfig loss_scale = {};
  ParametersConfig parameters = {};
  EmaConfig ema = {};
  CheckpointConfig checkpoint = {};
  EvaluateConfig evaluate = {};
  EarlyStoppingConfig early_stopping = {};
  TrackConfig track = {};
  std::filesystem::path output = "runs/latest";
  std::string resume = "auto";

  settings::Origins origins = {};  // where each setting was set, for error messages
  Remarks remarks = {};            // logged by the command that has loaded the recipe
  ProgramFields program = {};  // in addition to the bundled sections, or instead of model, tokenizer and data

  // The value of `resume`; nullopt if it is the folder of a checkpoint.
  std::optional<ResumeMode> resume_mode() const { return find_enum<ResumeMode>(resume); }
  void fields(settings::Fields& field);
  bool operator==(const Recipe&) const = default;
};

// Reads a recipe, applies `overrides` ("optimizer.lr=3e-5", in order) and resolves it. Relative paths stay
// relative to the working directory. `program`: the fields of a program's own settings (settings::fields_of),
// which are read, checked and printed like stretto's; a section model, tokenizer or data among them replaces
// stretto's. REQUIRES: their struct outlives the recipe. Throws ConfigError with file:line:column, IoError
// for an unreadable file. Requirements of a verb are checked by check_recipe.
Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides = {},
                   const std::vector<settings::Field>& program = {});

// Like load_recipe, for the text of a recipe; `name` begins every position.
Recipe parse_recipe(const std::string& yaml, const std::string& name,
                    std::span<const std::string> overrides = {},
                    const std::vector<settings::Field>& program = {});

// Fills in settings implied by others: the strategy's precision (training.strategy becomes the kind without
// precision), the tokenizer's folder, the cache, the monitored metric. Idempotent. Throws ConfigError for an
// unknown strategy and for one that contradicts training.precision.
void resolve(Recipe& recipe);

// The recipe as YAML, from which parse_recipe returns an equal recipe. REQUIRES: recipe is resolved.
std::string dump_recipe(const Recipe& recipe);

// training.offload_optimizer, or the output folder if that is in_output_folder.
constexpr const char* in_output_folder = "auto";
std::optional<std::filesystem::path> offload_folder(const Recipe& recipe);
// The same of training.offload_parameters.
std::optional<std::filesystem::path> parameter_folder(const Recipe& recipe);

// The use of a recipe. fit: a program that trains its own Module and loads model and data itself.
enum class Verb { train, test, fit };

// Checks a recipe before anything is started: throws ConfigError, which begins with the position of the
// setting to change, for settings that are missing, that contradict each other, or that name files which do
// not exist. Sections that the verb does not read are not checked; batch sizes, which depend on the world
// size, are checked by resolve() (strategy/topology.h). REQUIRES: recipe is resolved.
void check_recipe(const Recipe& recipe, Verb verb);

// Throws ConfigError if the recipe clips gradients or scales the loss, for an optimizer that evaluates a
// batch several times (OptimizerKind::reevaluates).
void require_whole_gradients(const Recipe& recipe, const std::string& optimizer);

// Serialises the recipe and its origins for another process: decode_recipe reads no file and expands no
// variable. REQUIRES: recipe is resolved.
std::string encode_recipe(const Recipe& recipe);
Recipe decode_recipe(const std::string& text, const std::vector<settings::Field>& program = {});

// The settings that affect the result of a run (unlike output, logging, retention), by dotted name.
nlohmann::json computing_settings(const Recipe& recipe);

// Whether a setting, by dotted name, is not one of these, so that a resumed run may have another value for
// it.
bool may_change_on_resume(const std::string& name);

// The settings that must be the same on all ranks, by dotted name: all but paths of inputs, which may differ
// between hosts.
nlohmann::json shared_settings(const Recipe& recipe);

// The shared settings as inputs with their positions.
std::vector<Input> inputs_of(const Recipe& recipe);

// The settings from which the trackers of a run are made.
TrackerSetup tracker_setup(const Recipe& recipe);

// Every setting with its meaning, range and default, for --help; `program` as in load_recipe.
std::string recipe_help(const std::vector<settings::Field>& program = {});

// The help on one section or setting: "optimizer", "optimizer.lr". Throws ConfigError for an unknown name.
std::string recipe_help_on(const std::string& name);

// The help on sections, one line each.
std::string recipe_sections(const std::vector<settings::Field>& program = {});

// The JSON schema (draft 2020-12) of recipe files, for editors and generators.
nlohmann::ordered_json recipe_schema();

}  // namespace stretto
