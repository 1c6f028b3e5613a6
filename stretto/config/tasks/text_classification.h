#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model_config/problem_type.h"
#include "stretto/settings/fields.h"
#include "stretto/settings/one_of.h"

namespace stretto {

struct TaskKind;  // config/task_kind.h

// Tasks of GLUE (metrics/glue.h).
enum class GlueName { cola, sst2, mrpc, qqp, stsb, mnli, mnli_mm, qnli, rte, wnli, ax };
constexpr auto names_of(GlueName) {
  return std::to_array<std::string_view>(
      {"cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli-mm", "qnli", "rte", "wnli", "ax"});
}

// The section text_classification: kind of labels, loss and metrics.
struct TextClassificationConfig {
  std::optional<settings::OneOf<ProblemType>> problem_type = std::nullopt;
  std::optional<std::string> label_separator = std::nullopt;
  std::vector<std::string> class_weights = {};  // LABEL=WEIGHT
  double label_smoothing = 0;
  std::optional<settings::OneOf<GlueName>> glue_task = std::nullopt;

  // problem_type, which a regression of GLUE implies.
  settings::OneOf<ProblemType> problem() const;
  void fields(settings::Fields& field);
  bool operator==(const TextClassificationConfig&) const = default;
};

TaskKind text_classification_kind();

}  // namespace stretto
