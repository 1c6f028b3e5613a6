#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/metrics/classification.h"

namespace stretto::metrics {

// The scores of one class against the rest. 0/0 is zero, as in scikit-learn.
struct ClassScores {
  std::string label;
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  int64_t support = 0;  // gold samples
};

ClassScores class_scores(const std::string& label, int64_t correct, int64_t predicted, int64_t gold);

// One entry per label. REQUIRES: as many labels as `confusion` has.
std::vector<ClassScores> class_scores(const Confusion& confusion, const std::vector<std::string>& labels);

// {LABEL: {precision, recall, f1, support}, ...}
nlohmann::ordered_json class_scores_json(const std::vector<ClassScores>& scores);

// {labels: [...], counts: [[...], ...]}: a row of `counts` per gold label, a column per predicted one.
nlohmann::ordered_json confusion_json(const Confusion& confusion, const std::vector<std::string>& labels);

// The scores as lines of at most 80 columns for a terminal. Long labels are shortened. If there are many
// labels, only those with the most gold samples are shown, and the last line states this.
std::string class_scores_table(const std::vector<ClassScores>& scores);
std::string confusion_table(const Confusion& confusion, const std::vector<std::string>& labels);

}  // namespace stretto::metrics
