#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/keys.h"

// Reads the hyperparameter file of AcceleratorModule (accmt), hps_config.yaml.
namespace stretto::compat {
namespace {

using settings::YamlNode;

void same(const Value& value, const std::string& setting, ForeignConfig& config) {
  same_as(value.key, setting).use(value, config);
}

// Calls `use` for each key of a section.
template <class Use>
void each_key(const Value& section, const Use& use) {
  if (section.node.kind != YamlNode::Kind::mapping)
    refuse(section, "expected keys, such as {type: AdamW, lr: 1e-3}");
  for (const YamlNode& child : section.node.children) {
    if (child.kind != YamlNode::Kind::null) use(Value{section.key + "." + child.key, child}, child.key);
  }
}

// Types and arguments have the same names as in recipes.
void hps_optimizer(const Value& section, ForeignConfig& config) {
  each_key(section,
           [&](const Value& value, const std::string& key) { same(value, "optimizer." + key, config); });
}

// The value is a number, or a list of two numbers: for training and validation.
void hps_batch_size(const Value& value, ForeignConfig& config) {
  if (value.node.kind == YamlNode::Kind::scalar) return same(value, "training.batch_size", config);
  if (value.node.kind != YamlNode::Kind::sequence || value.node.children.size() != 2)
    refuse(value, "expected one number, or a list of two: of training and of validation");
  same({value.key, value.node.children[0]}, "training.batch_size", config);
  same({value.key, value.node.children[1]}, "evaluate.batch_size", config);
}

// accmt derives arguments from the length of the run, like stretto; a warm-up below 1 is a fraction of all
// steps.
void hps_scheduler(const Value& section, ForeignConfig& config) {
  each_key(section, [&](const Value& value, const std::string& key) {
    if (key == "num_training_steps" || key == "steps_per_epoch" || key == "epochs" || key == "last_epoch") {
      ignored(value.key, "it follows from the length of the run").use(value, config);
      return;
    }
    const auto number = parse_double(value.text());
    const bool is_part = key == "num_warmup_steps" && number && *number > 0 && *number < 1;
    same(value, is_part ? "scheduler.warmup_ratio" : "scheduler." + key, config);
  });
}

const std::vector<Key>& hps_keys() {
  static const std::vector<Key> keys = {
      same_as("hps.epochs", "training.epochs"),
      same_as("hps.max_steps", "training.max_steps"),
      {"hps.batch_size", hps_batch_size},
      {"hps.optimizer", hps_optimizer},
      {"hps.optim", hps_optimizer},  // the spelling in its documentation
      {"hps.scheduler", hps_scheduler},
      only("hps.step_scheduler_per_epoch", {"false", "False"},
           "schedules count optimizer steps; express step sizes in steps"),
  };
  return keys;
}

}  // namespace

ForeignConfig read_hps(const std::filesystem::path& file) {
  ForeignConfig config;
  const YamlNode document = parse_file(file, "the hps_config.yaml of AcceleratorModule", config);
  require_file_for("--hps", document);
  if (document.kind != YamlNode::Kind::mapping || document.find("hps") == nullptr)
    throw ConfigError("{}: expected a section hps at the top level", document.place);
  read(document, hps_keys(), config);
  const auto imply = [&](const char* key, const char* setting, const char* value) {
    if (find(document, std::string("hps.") + key) == nullptr)
      config.settings.push_back(
          {setting, value, fmt::format("{}: hps.{} (unset)", document.place, key), true});
  };
  imply("epochs", "training.epochs", "1");
  imply("scheduler", "scheduler.type", "Constant");
  return config;
}

}  // namespace stretto::compat
