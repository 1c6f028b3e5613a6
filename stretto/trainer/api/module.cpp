#include "stretto/trainer/api/module.h"

#include <set>

#include "stretto/base/error.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/tensor/safetensors.h"

namespace stretto {

Predictions Module::validation_step(const Batch& batch, StepContext& context) {
  if (!automatic_optimization()) {
    throw ConfigError(
        "validation_step is not overridden, and training_step cannot be evaluated, because it steps optimizers; override validation_step");
  }
  const Loss loss = training_step(batch, context);
  if (loss.count > 0) context.log("loss", loss.sum.item<double>() / loss.count, loss.count);
  return {};
}

Metrics Module::metrics(const Predictions& predictions) const {
  throw ConfigError(
      "validation_step returns {}, but metrics() is not overridden to compute metrics from them: override metrics()",
      predictions.rows.defined() ? "rows " + describe(predictions.rows) : "bytes");
}

Predictions Module::predict_step(const Batch&, StepContext&) {
  throw ConfigError(
      "predict_step is not overridden; return one row of float64 values, or bytes, per sample from it");
}

void Module::save(const std::filesystem::path& folder, const ListedSource& weights) const {
  save_safetensors(folder / "model.safetensors", weights);
}

void Module::load(const std::filesystem::path& folder) {
  read_weights_file(*this, folder / "model.safetensors");
}

void Module::register_metric(std::shared_ptr<Metric> metric) {
  if (metric == nullptr) throw ConfigError("metric() was called with a null pointer; pass a Metric");
  metrics_.push_back(std::move(metric));
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

void Module::parameters_from(std::unique_ptr<const TensorSource> source) {
  if (source == nullptr)
    throw ConfigError("parameters_from() was called with a null pointer; pass a TensorSource");
  if (source_ != nullptr)
    throw ConfigError("parameters_from() was called twice; join the sources as one JoinedSources");
  nn::drop_values(root(), *source, at::kCPU);
  source_ = std::move(source);
}

void read_parameters(Module& module) {
  if (const auto source = module.take_source()) nn::fill_parameters(module.root(), *source);
}

void read_weights_file(Module& module, const std::filesystem::path& file) {
  NamedTensors stored = SafetensorsFile(file).load_all();
  at::NoGradGuard no_grad;
  std::set<const void*> filled;  // tied tensors are in the file under their first name
  const auto fill = [&](const std::string& name, const Tensor& tensor, const TensorLayout& layout) {
    if (!filled.insert(tensor.unsafeGetTensorImpl()).second) return;
    const auto found = stored.find(name);
    if (found == stored.end())
      throw DataError("{}: there is no {}, which the module has; load the model of the same module",
                      file.string(), name);
    if (found->second.sizes() != at::IntArrayRef(layout.global)) {
      throw DataError("{}: {} is {}; the module's is [{}]", file.string(), name, describe(found->second),
                      fmt::join(layout.global, ", "));
    }
    if (layout.cuts.empty()) {
      tensor.set_data(found->second.to(tensor.device()));
    } else {
      tensor.set_data(at::empty(tensor.sizes(), tensor.options().dtype(found->second.scalar_type())));
      nn::fill_parameter(name, tensor, layout, MemorySource({*found}));
    }
    stored.erase(found);
  };
  for (const nn::LayerParameter& parameter : nn::layer_parameters(module.root()))
    fill(parameter.name, parameter.tensor, parameter.layout());
  for (const auto& item : module.root().named_buffers())
    fill(item.key(), item.value(), {item.value().sizes().vec()});
  if (!stored.empty())
    throw DataError("{}: the module has no {}; load the model of the same module", file.string(),
                    stored.begin()->first);
}

Batch make_batch(const Module& module, const data::Dataset& dataset, std::span<const int64_t> samples) {
  return dataset.pack_with(samples,
                           [&](std::span<const data::Sample> single) { return module.collate(single); });
}

}  // namespace stretto
