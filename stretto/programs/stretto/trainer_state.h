#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stretto/compat/hf_script.h"

namespace stretto::cli {

// The report of transformers' Trainer on a training.
struct TrainerState {
  nlohmann::json metrics;  // train_results.json: epoch, train_loss, train_runtime, ...
  nlohmann::json state;    // trainer_state.json
};

// Builds the report of the finished run of `plan`. Throws IoError, DataError.
TrainerState read_trainer_state(const compat::ScriptPlan& plan);

}  // namespace stretto::cli
