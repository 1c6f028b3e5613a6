#pragma once

#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto::trainer {

// Writes summary.json, dev_results.json if there was an evaluation, and the closing lines of the log. Called
// on rank 0, after fit().
void write_summary(const Recipe& recipe, const Mesh& mesh, const FitResult& result);

// Metrics for JSON, in which numbers of samples are integers.
nlohmann::ordered_json metrics_json(const Metrics& metrics);

// Metrics as a line: "accuracy 0.9312, loss 0.2044".
std::string metrics_text(const Metrics& metrics);

}  // namespace stretto::trainer
