#include "stretto/trainer/records/summary.h"

#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/strings.h"
#include "stretto/trainer/folder/run_folder.h"

namespace stretto::trainer {
namespace {

// The steps of this command, without those before the checkpoint that it resumed from.
std::string steps_text(const FitResult& result) {
  const std::string steps = counted(result.steps - result.resumed_after, "step");
  return result.resumed_after > 0 ? fmt::format("{} after step {}", steps, result.resumed_after) : steps;
}

// The evaluation may have been inside of the epoch. Checkpoints of earlier versions lack its step.
std::string best_place(const FitResult& result) {
  const std::string epoch = fmt::format("epoch {}", result.best_epoch);
  return result.best_step > 0 ? fmt::format("step {}, in {}", result.best_step, epoch) : epoch;
}

}  // namespace

void write_summary(const Recipe& recipe, const Mesh& mesh, const FitResult& result) {
  const RunFolder folder(recipe.output);
  const double speed = result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0;
  nlohmann::ordered_json summary = {
      {"steps", result.steps},           {"resumed_after_step", result.resumed_after},
      {"samples", result.samples},       {"tokens", result.tokens},
      {"seconds", result.seconds},       {"samples_per_second", speed},
      {"ranks", mesh.size(Axes::world)}, {"model", folder.model().string()}};
  summary["total_steps"] = result.total_steps;
  if (recipe.training.precision == Precision::fp16) summary["skipped_steps"] = result.skipped_steps;
  summary["training_samples"] = result.training_samples;
  if (!result.ended_by.empty()) summary["ended_by"] = result.ended_by;
  if (result.best) {
    summary["best_epoch"] = result.best_epoch;
    summary["best_step"] = result.best_step;
    summary["best"] = metrics_json(*result.best);
    folder.write_json("dev_results.json", summary["best"]);
  }
  folder.write_json("summary.json", summary);
  log::info("done in {} | {}, {}, {:.1f} samples/s over {}", human_duration(result.seconds),
            steps_text(result), counted(result.samples, "sample"), speed,
            counted(mesh.size(Axes::world), "rank"));
  if (result.best) log::info("best       {}: {}", best_place(result), metrics_text(*result.best));
  log::info("model      {}", folder.model().string());
  if (const auto records = folder.path() / "metrics.jsonl"; std::filesystem::exists(records))
    log::info("metrics    {}", records.string());
}

nlohmann::ordered_json metrics_json(const Metrics& metrics) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : metrics) json[name] = metric_json(name, value);
  return json;
}

std::string metrics_text(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += (text.empty() ? "" : ", ") + metric_text(name, value);
  return text;
}

}  // namespace stretto::trainer
