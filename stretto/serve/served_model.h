#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "stretto/serve/pipeline.h"
#include "stretto/text/tokenizer.h"

namespace stretto::serve {

// A trained model folder, loaded for inference; the common part of pipelines.
struct ServedModel {
  // Throws DataError if weights are missing in the folder or not finite.
  ServedModel(const std::filesystem::path& folder, const std::string& head, const PipelineOptions& options,
              const ModelRegistry& models);

  // The logits of a batch, on CPU in fp64. Neither they nor the batch are on `device`.
  Tensor logits(const Batch& batch) const;

  // Throws DataError, which shows the beginning of `text`, if logits are not finite, unless the options allow
  // it.
  void require_finite(const Tensor& logits, const std::string& text) const;

  std::string folder;
  nlohmann::json config;
  text::Tokenizer tokenizer;
  at::Device device;
  std::shared_ptr<TextModel> model;  // on `device`
  bool allow_nonfinite;
  // The number of tokens of a batch is padded to a multiple of this, because oneDNN compiles bf16 matmuls for
  // each number of rows.
  int64_t pad_to_multiple_of;
};

}  // namespace stretto::serve
