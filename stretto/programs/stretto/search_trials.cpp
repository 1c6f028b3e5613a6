#include "stretto/programs/stretto/search_trials.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stretto/checkpoint_format/folder.h"
#include "stretto/report/run_data.h"

namespace stretto::cli {

TrialState read_trial(const std::filesystem::path& folder, const SearchMetric& metric, int64_t until) {
  TrialState trial;
  const auto checkpoints = checkpoint_format::list_checkpoints(folder / "checkpoints");
  if (!checkpoints.empty()) trial.steps = checkpoints.back().step;
  if (!report::is_run(folder)) return trial;
  const report::RunData run = report::read_run(folder);
  trial.finished = run.state == report::RunData::State::finished;
  const auto values = run.metrics.find("eval_" + metric.name);
  if (values == run.metrics.end()) return trial;
  for (const auto& point : values->second) {
    if (point.step > until || !std::isfinite(point.value)) continue;
    const bool better =
        !trial.best || (metric.larger_is_better ? point.value > *trial.best : point.value < *trial.best);
    if (better) trial.best = point.value;
  }
  return trial;
}

std::vector<int64_t> better_half(const std::vector<int64_t>& trials,
                                 const std::vector<std::optional<double>>& scores, bool larger_is_better) {
  std::vector<size_t> order(trials.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (!scores[a] || !scores[b]) return scores[a].has_value() && !scores[b].has_value();
    return larger_is_better ? *scores[a] > *scores[b] : *scores[a] < *scores[b];
  });
  order.resize((trials.size() + 1) / 2);
  std::ranges::sort(order);
  std::vector<int64_t> kept;
  for (const size_t i : order) kept.push_back(trials[i]);
  return kept;
}

}  // namespace stretto::cli
