#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "stretto/trainer/api/metric.h"
#include "stretto/trainer/api/step_report.h"

namespace stretto::trainer {

// An evaluation, by evaluate.async, whose metrics have not taken effect yet.
struct PendingEvaluation {
  StepReport at;                        // of the evaluated weights: step, epoch, epochs, epoch_ends
  double train_loss = 0;                // the mean over the steps since the previous evaluation
  std::optional<Metrics> metrics = {};  // unset while they are computed

  nlohmann::json to_json() const;
  static PendingEvaluation from_json(const nlohmann::json& json);
};

}  // namespace stretto::trainer
