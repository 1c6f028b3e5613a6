#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "stretto/generate/options.h"
#include "stretto/serve/pipeline.h"

namespace stretto {

// Continues texts with any model folder whose head is that of a causal language model. Not thread-safe.
//
//   TextGenerator generator("runs/lm/model", {.generation = {.max_new_tokens = 20}, .on_text = print});
//   generator.add("Once upon");
//   generator.finish();
class TextGenerator {
 public:
  // `loading`: dtype, allow_nonfinite and choose_matmul_libraries apply. Throws ConfigError for a model of
  // another kind and for options out of range, DataError if weights are missing or not finite.
  TextGenerator(const std::filesystem::path& folder, TextWriterOptions options,
                const PipelineOptions& loading = {}, const ModelRegistry& models = bundled_models());
  ~TextGenerator();

  // See TextWriter.
  void require(const std::string& text) const;
  void add(const std::string& text, std::optional<int64_t> number = {});
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace serve {

PipelineType text_generation_pipeline();  // for the registry

}  // namespace serve
}  // namespace stretto
