#include "stretto/programs/stretto/script_results.h"

#include <algorithm>
#include <iostream>

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/metrics/glue.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/run_records.h"
#include "stretto/programs/stretto/trainer_state.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::json;

// A duration in the format of the scripts, h:mm:ss.cc.
std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  const int64_t minutes = whole / 60;
  return fmt::format("{}:{:02}:{:05.2f}", minutes / 60, minutes % 60,
                     seconds - static_cast<double>(minutes * 60));
}

std::string shown(const std::string& name, const Json& value) {
  if (!value.is_number_float()) return value.dump();
  if (name.ends_with("_runtime")) return clock_text(value.get<double>());
  if (name == "total_flos") return fmt::format("{}GF", static_cast<int64_t>(value.get<double>()) >> 30);
  return fmt::format("{:.4f}", value.get<double>());
}

// Returns seqeval's overall metrics by short names; with `entity_level` all metrics by seqeval's names, those
// of types as TYPE_f1.
Json ner_metrics(const Json& results, bool entity_level) {
  Json metrics = Json::object();
  for (const auto& [name, value] : results.items()) {
    if (name.ends_with(" avg")) continue;
    if (!value.is_object()) {
      metrics[!entity_level && name.starts_with("overall_") ? name.substr(8) : name] = value;
    } else if (entity_level) {
      for (const auto& [inner, number] : value.items()) metrics[name + "_" + inner] = number;
    }
  }
  return metrics;
}

// The metrics of run_glue, that is, without the results per class.
Json plain_metrics(const Json& results) {
  Json metrics = Json::object();
  for (const auto& [name, value] : results.items())
    if (!value.is_structured()) metrics[name] = value;
  return metrics;
}

void write_sorted(const std::filesystem::path& file, const Json& json) {
  write_file_atomic(file, json.dump(4) + "\n");
}

}  // namespace

// Without training, all_results.json keeps the results of earlier commands, as with the scripts.
ScriptResults::ScriptResults(compat::Script script, const compat::ScriptPlan& plan)
    : script_(script), plan_(plan), flair_(run(), plan.output_dir) {
  const std::filesystem::path file = plan.output_dir / "all_results.json";
  if (!plan.train && std::filesystem::exists(file)) all_ = read_json(file);
}

void ScriptResults::add_training() {
  for (const auto& entry : std::filesystem::directory_iterator(run() / "model"))
    std::filesystem::copy_file(entry.path(), plan_.output_dir / entry.path().filename(),
                               std::filesystem::copy_options::overwrite_existing);
  const TrainerState training = read_trainer_state(plan_);
  write_file_atomic(plan_.output_dir / "trainer_state.json", training.state.dump(2) + "\n");
  epoch_ = training.metrics.at("epoch");
  if (script_ == compat::Script::flair_ner) flair_.write_training();
  add("train", training.metrics);
}

Json ScriptResults::task_metrics(const Json& results) const {
  if (script_ == compat::Script::qa) return results;
  if (script_ == compat::Script::glue || script_ == compat::Script::clm) return plain_metrics(results);
  return ner_metrics(results, plan_.entity_level);
}

void ScriptResults::add_test(const std::string& stage) {
  add_predictions(stage);
  if (!std::filesystem::exists(run() / "test_results.json")) return;  // no gold labels
  const Json results = read_json(run() / "test_results.json");
  const Json named = task_metrics(results);
  Json metrics = Json::object();
  for (const auto& [name, value] : named.items()) {
    // run_qa prints the metrics of the official scripts without a prefix, and run_clm the perplexity.
    const bool bare = (script_ == compat::Script::qa && name != "loss") || name == "perplexity";
    metrics[(bare ? "" : stage + "_") + name] = value;
  }
  const Json summary = read_json(run() / "test_summary.json");
  const double seconds = summary.at("seconds");
  const auto per_second = [&](const char* name) {
    return seconds > 0 ? summary.at(name).get<double>() / seconds : 0;
  };
  metrics[stage + "_runtime"] = seconds;
  metrics[stage + "_samples"] = summary.at("samples");
  metrics[stage + "_samples_per_second"] = per_second("samples");
  metrics[stage + "_steps_per_second"] = per_second("steps");
  if (!epoch_.is_null()) metrics["epoch"] = epoch_;
  if (script_ == compat::Script::flair_ner && stage == "predict") flair_.log_test(results);
  add(stage, metrics);
}

void ScriptResults::add(const std::string& stage, const Json& metrics) {
  Json prefixed = Json::object();
  size_t width = 0;
  for (const auto& [name, value] : metrics.items()) {
    width = std::max(width, name.size());
    const bool is_bare = script_ == compat::Script::clm && name == "perplexity";
    const bool has_prefix =
        name == "epoch" || name == "total_flos" || is_bare || name.starts_with(stage + "_");
    prefixed[has_prefix ? name : stage + "_" + name] = value;
  }
  std::cout << "***** " << stage << " metrics *****\n";
  for (const auto& [name, value] : metrics.items())
    std::cout << "  " << name << std::string(width - name.size(), ' ') << " = " << shown(name, value) << "\n";
  arguments::flush_standard_output();
  all_.update(prefixed);
  write_sorted(plan_.output_dir / (stage + "_results.json"), prefixed);
  write_sorted(plan_.output_dir / "all_results.json", all_);
}

void ScriptResults::add_predictions(const std::string& stage) const {
  if (script_ == compat::Script::qa) {
    for (const char* name : {"predictions.json", "nbest_predictions.json", "null_odds.json"}) {
      const std::filesystem::path target = plan_.output_dir / (stage + "_" + name);
      std::filesystem::remove(target);
      if (std::filesystem::exists(run() / name)) std::filesystem::copy_file(run() / name, target);
    }
    return;
  }
  if (script_ == compat::Script::flair_ner) return flair_.write_predictions(stage);
  if (stage != "predict") return;
  std::string lines = script_ == compat::Script::glue ? "index\tprediction\n" : "";
  size_t index = 0;
  for (const auto& record : read_records(run() / "predictions.jsonl")) {
    if (script_ == compat::Script::glue) {
      lines += record.contains("prediction")
                   ? fmt::format("{}\t{:3.3f}\n", index++, record["prediction"].get<double>())
                   : fmt::format("{}\t{}\n", index++,
                                 metrics::spelled_label(record.at("label").get<std::string>()));
      continue;
    }
    std::string tags;
    for (const auto& tag : record.at("tags")) tags += (tags.empty() ? "" : " ") + tag.get<std::string>();
    lines += tags + "\n";
  }
  std::string name = "predictions.txt";
  if (script_ == compat::Script::glue)
    name = plan_.glue_task.empty() ? "predict_results.txt" : "predict_results_" + plan_.glue_task + ".txt";
  write_file_atomic(plan_.output_dir / name, lines);
}

}  // namespace stretto::cli
