#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "stretto/config/recipe.h"

namespace stretto {

// The parts of check_recipe(). Each throws ConfigError, which begins with the position of the setting to
// change.

// Throws unless `path` exists and is a file, or a folder where that may be.
void require_file(const Recipe& recipe, const std::string& setting, const std::filesystem::path& path);

// The same for a setting that is required, `why`: "by stretto test".
void require_path(const Recipe& recipe, const std::string& setting,
                  const std::optional<std::filesystem::path>& path, const std::string& why);

void check_output(const Recipe& recipe);

// Throws if the model that `stretto test` loads does not exist.
void check_trained_model(const Recipe& recipe);

// `content`: what is offloaded to the folder, for the message.
void check_offload(const Recipe& recipe, const char* setting,
                   const std::optional<std::filesystem::path>& folder, const char* content);

// The sections model and tokenizer.
void check_model(const Recipe& recipe);

// Throws if the model or the tokenizer is in the output folder: a run moves the earlier one in its folder
// aside, or removes it, before it writes a model.
void check_start(const Recipe& recipe);

// The section data, for training.
void check_data(const Recipe& recipe);

// The sections optimizer, scheduler, loss_scale and ema.
void check_optimization(const Recipe& recipe);

}  // namespace stretto
