#include "stretto/trainer/module.h"

#include "stretto/base/error.h"

namespace stretto {

Tensor Module::validation_step(const Batch& batch, StepContext& context) {
  const Loss loss = training_step(batch, context);
  if (loss.count > 0) context.log("loss", loss.sum.item<double>() / loss.count, loss.count);
  return {};
}

Metrics Module::metrics(const Tensor& rows) const {
  throw ConfigError(
      "validation_step returns rows {}, but metrics() is not overridden to compute metrics from them: override metrics()",
      describe(rows));
}

void Module::save(const std::filesystem::path& folder, const NamedTensors& weights) const {
  save_safetensors(folder / "model.safetensors", weights);
}

void Module::register_root(std::shared_ptr<torch::nn::Module> module) {
  if (module == nullptr)
    throw ConfigError("model() was called with a null pointer; pass a torch::nn::Module");
  if (root_ != nullptr) {
    throw ConfigError(
        "model() was called twice; register one torch::nn::Module that contains all trainable modules");
  }
  root_ = std::move(module);
}

void Module::register_teacher(std::shared_ptr<torch::nn::Module> module) {
  if (module == nullptr)
    throw ConfigError("teacher() was called with a null pointer; pass a torch::nn::Module");
  teachers_.push_back(std::move(module));
}

const std::shared_ptr<torch::nn::Module>& Module::require_root() const {
  if (root_ == nullptr) {
    throw ConfigError(
        "the module has no model: register it in the constructor, as in net_(model(std::make_shared<Net>()))");
  }
  return root_;
}

void load_all_parameters(Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.root().named_parameters()) names.push_back(item.key());
  module.load_parameters(names);
}

Batch make_batch(const Module& module, const data::Dataset& dataset, std::span<const int64_t> samples) {
  return dataset.pack_with(samples,
                           [&](std::span<const data::Sample> single) { return module.collate(single); });
}

}  // namespace stretto
