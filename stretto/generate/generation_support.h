#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stretto/generate/generator.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/registry.h"

// Functions that tests of generation share.
namespace stretto::generate {

using NewTokens = std::vector<std::vector<int32_t>>;  // the sequences of a prompt

inline const std::filesystem::path generation_goldens =
    std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";

inline std::shared_ptr<TextModel> load_generating(const std::string& folder) {
  const auto path = generation_goldens / folder;
  const auto model = make_text_model(bundled_models(), heads::causal_language_model,
                                     read_config_json(path / "config.json"), "config.json");
  load_weights(*model, path);
  return model;
}

inline std::vector<NewTokens> generated(const TextModel& model, const GenerationOptions& options,
                                        const std::vector<std::vector<int32_t>>& prompts,
                                        int64_t batch_size = 1, SearchEvents events = {},
                                        int64_t prompt_tokens_per_pass = 1024) {
  std::vector<NewTokens> all;
  Generator generator({.model = model,
                       .options = options,
                       .batch_size = batch_size,
                       .events = std::move(events),
                       .on_generated = [&](int64_t, const NewTokens& tokens) { all.push_back(tokens); },
                       .prompt_tokens_per_pass = prompt_tokens_per_pass});
  for (size_t i = 0; i < prompts.size(); ++i) generator.add(prompts[i], static_cast<int64_t>(i));
  generator.finish();
  return all;
}

}  // namespace stretto::generate
