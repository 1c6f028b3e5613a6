#include "stretto/metrics/multi_label.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/metrics/ratio.h"

namespace stretto::metrics {

MultiLabel::MultiLabel(std::span<const uint8_t> predicted, std::span<const uint8_t> gold,
                       const std::vector<std::string>& labels) {
  const size_t width = labels.size();
  if (width == 0 || predicted.size() != gold.size() || gold.size() % width != 0) {
    throw Error(
        "{} predictions for {} gold labels of {} classes; expected equal numbers, row-major over all classes",
        predicted.size(), gold.size(), width);
  }
  samples_ = static_cast<int64_t>(gold.size() / width);
  struct Counts {
    int64_t correct = 0, predicted = 0, gold = 0;
  };
  std::vector<Counts> counts(width);
  for (size_t row = 0; row < gold.size(); row += width) {
    for (size_t i = 0; i < width; ++i) {
      const bool found = predicted[row + i] != 0, wanted = gold[row + i] != 0;
      counts[i].correct += found && wanted ? 1 : 0;
      counts[i].predicted += found ? 1 : 0;
      counts[i].gold += wanted ? 1 : 0;
    }
    right_ += std::ranges::equal(predicted.subspan(row, width), gold.subspan(row, width)) ? 1 : 0;
  }
  for (size_t i = 0; i < width; ++i) {
    classes_.push_back(class_scores(labels[i], counts[i].correct, counts[i].predicted, counts[i].gold));
    correct_ += counts[i].correct;
    predicted_ += counts[i].predicted;
    gold_ += counts[i].gold;
  }
}

std::map<std::string, double> MultiLabel::metrics() const {
  if (samples_ == 0) throw Error("metrics of no samples are not defined");
  double macro = 0, weighted = 0;
  for (const ClassScores& one : classes_) {
    macro += one.f1;
    weighted += one.f1 * static_cast<double>(one.support);
  }
  return {{"accuracy", ratio(right_, samples_)},
          {"f1_micro", ratio(2 * correct_, predicted_ + gold_)},
          {"f1_macro", ratio(macro, int64_t{std::ssize(classes_)})},
          {"f1_weighted", ratio(weighted, gold_)}};
}

}  // namespace stretto::metrics
