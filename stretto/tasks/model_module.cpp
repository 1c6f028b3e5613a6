#include "stretto/tasks/model_module.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/config/model_json.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/text/copy_tokenizer.h"

namespace stretto {

ModelModule::ModelModule(const ModelConfig& config, const std::string& head,
                         const std::vector<std::string>& labels, uint64_t seed, const ModelRegistry& models,
                         const nn::TensorParallel& ranks) {
  ModelJson read = read_model_json(config);
  original_config_ = std::move(read.json);
  model_ = model(make_text_model(models, head, original_config_, read.name,
                                 {.labels = labels, .dropout = config.dropout, .tensor_parallel = ranks}));
  auto random = initial_values(*model_, seed);
  if (!config.path) {
    log::info("random weights, initialised from the seed: the model is new");
    parameters_from(std::move(random));
    return;
  }
  auto [values, report] = open_weights(*model_, *config.path);
  parameters_from(std::make_unique<JoinedSources>(std::move(values), std::move(random)));
  if (!report.missing.empty()) {
    log::info("weights initialised from the seed, not found in {}: {}", config.path->string(),
              fmt::join(report.missing, ", "));
  }
  if (!report.unexpected.empty()) {
    log::info("weights in {} that this model does not use: {}", config.path->string(),
              fmt::join(report.unexpected, ", "));
  }
}

void ModelModule::save(const std::filesystem::path& folder, const ListedSource& weights) const {
  write_file_atomic(folder / "config.json", exported_config().dump(2) + "\n");
  save_safetensors(folder / "model.safetensors", weights);
  save_companions(folder);
}

void ModelModule::save_companions(const std::filesystem::path& folder) const {
  if (!tokenizer_.empty()) text::copy_tokenizer(tokenizer_, lowercase_, folder, add_prefix_space_);
}

nlohmann::json ModelModule::exported_config() const { return model_->config_json(original_config_); }

// The values of config.json without the recipe's model.dropout, because recipes are compared separately.
nlohmann::json ModelModule::model_config() const {
  nlohmann::json config = original_config_;
  for (const char* origin : {"_name_or_path", "transformers_version", "architectures"}) config.erase(origin);
  return config;
}

void ModelModule::ship_tokenizer(const std::filesystem::path& tokenizer, bool lowercase,
                                 std::optional<bool> add_prefix_space) {
  tokenizer_ = tokenizer;
  lowercase_ = lowercase;
  add_prefix_space_ = add_prefix_space;
}

}  // namespace stretto
