#include "stretto/serve/served_model.h"

#include "stretto/base/error.h"
#include "stretto/base/user_cache.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/parallel/matmul_libraries.h"
#include "stretto/tensor/finite.h"
#include "stretto/tensor/vector_math.h"

namespace stretto::serve {
namespace {

NamedTensors weights_of(const TextModel& model) {
  NamedTensors weights;
  for (const auto& item : model.named_parameters()) weights[item.key()] = item.value();
  return weights;
}

}  // namespace

ServedModel::ServedModel(const std::filesystem::path& path, const std::string& head,
                         const PipelineOptions& options, const ModelRegistry& models)
    : folder(path.string()),
      config(read_config_json(path / "config.json")),
      tokenizer(text::Tokenizer::load(path)),
      device(options.device),
      model(make_text_model(models, head, config, (path / "config.json").string())),
      allow_nonfinite(options.allow_nonfinite),
      pad_to_multiple_of(options.dtype == at::kBFloat16 ? 64 : 1) {
  prepare_vector_math();
  const WeightReport report = load_weights(*model, path);
  if (!report.missing.empty()) {
    throw DataError("{}: the weights lack {}; fine-tune a model first (stretto train)", folder,
                    fmt::join(report.missing, ", "));
  }
  model->to(options.device, options.dtype);
  model->eval();
  const std::string nonfinite = allow_nonfinite ? "" : first_nonfinite(weights_of(*model));
  if (!nonfinite.empty()) {
    throw DataError(
        "{}: {} holds NaN or infinity, so predictions would be meaningless; train the model again, or load it anyway with {}",
        folder, nonfinite, options.names("allow_nonfinite"));
  }
  if (!options.choose_matmul_libraries || !device.is_cpu()) return;
  const parallel::MatmulOptions matmuls = {
      .dtype = options.dtype, .cache = user_cache_folder(), .few_rows = head == heads::causal_language_model};
  options.group != nullptr ? parallel::MatmulLibraries(*model, matmuls, *options.group)
                           : parallel::MatmulLibraries(*model, matmuls);
}

Tensor ServedModel::logits(const Batch& batch) const {
  return model->forward(batch.to(device), {}).to(at::kCPU, at::kDouble).contiguous();
}

void ServedModel::require_finite(const Tensor& logits, const std::string& text) const {
  if (allow_nonfinite || at::isfinite(logits).all().item<bool>()) return;
  throw DataError("{}: the logits for \"{}\" are not finite: the model's activations overflow", folder,
                  text.substr(0, 80));
}

}  // namespace stretto::serve
