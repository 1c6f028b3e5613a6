#include "stretto/cli/script_results.h"

#include <algorithm>
#include <iostream>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/command/standard_output.h"
#include "stretto/corpus/tags.h"
#include "stretto/metrics/glue.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::ordered_json;

// h:mm:ss.cc, as the scripts print it.
std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  const int64_t minutes = whole / 60;
  return fmt::format("{}:{:02}:{:05.2f}", minutes / 60, minutes % 60,
                     seconds - static_cast<double>(minutes * 60));
}

std::string shown(const std::string& name, const Json& value) {
  if (!value.is_number_float()) return value.dump();
  if (name.ends_with("_runtime")) return clock_text(value.get<double>());
  return fmt::format("{:.4f}", value.get<double>());
}

// The lines of metrics.jsonl.
std::vector<Json> records(const std::filesystem::path& file) {
  std::vector<Json> lines;
  const std::string text = read_file(file);
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) lines.emplace_back(parse_json(line, file.string()));
  return lines;
}

// The metrics of run_ner: seqeval's overall ones by short names.
Json ner_metrics(const nlohmann::json& results) {
  Json metrics = Json::object();
  for (const auto& [name, value] : results.items()) {
    if (name.ends_with(" avg")) continue;
    if (name.starts_with("overall_")) {
      metrics[name.substr(8)] = value;
    } else if (value.is_object()) {
      for (const auto& [inner, number] : value.items()) metrics[name + "_" + inner] = number;
    } else {
      metrics[name] = value;
    }
  }
  return metrics;
}

// The metrics of run_glue: without the results by class.
Json plain_metrics(const nlohmann::json& results) {
  Json metrics = Json::object();
  for (const auto& [name, value] : results.items())
    if (!value.is_structured()) metrics[name] = value;
  return metrics;
}

// A record of metrics.jsonl by the names of trainer_state.json's log_history.
Json scripts_names(Json record) {
  if (!record.contains("lr")) return record;
  record["learning_rate"] = record["lr"];
  record.erase("lr");
  return record;
}

}  // namespace

void ScriptResults::add_training() {
  for (const auto& entry : std::filesystem::directory_iterator(run() / "model"))
    std::filesystem::copy_file(entry.path(), plan_.output_dir / entry.path().filename(),
                               std::filesystem::copy_options::overwrite_existing);
  const nlohmann::json summary = read_json(run() / "summary.json");
  Json history = Json::array();
  double loss = 0, steps = 0, last_step = 0, epoch = 0;
  for (const Json& record : records(run() / "metrics.jsonl")) {
    history.push_back(scripts_names(record));
    if (!record.contains("loss") || !record["loss"].is_number() || record.contains("eval_loss")) continue;
    const double step = record.value("step", 0.0);
    loss += record["loss"].get<double>() * (step - last_step);
    steps += step - last_step;
    last_step = step;
    epoch = record.value("epoch", epoch);
  }
  const double seconds = summary.at("seconds").get<double>();
  Json metrics = {{"epoch", epoch}};
  if (steps > 0) metrics["train_loss"] = loss / steps;
  metrics["train_runtime"] = seconds;
  metrics["train_samples"] = summary.at("samples");
  metrics["train_samples_per_second"] = summary.at("samples_per_second");
  metrics["train_steps_per_second"] = seconds > 0 ? summary.at("steps").get<double>() / seconds : 0;
  Json state = {{"epoch", epoch}, {"global_step", summary.at("steps")}, {"log_history", history}};
  state["best_metric"] = summary.contains("best") ? Json(summary.at("best")) : Json(nullptr);
  write_file_atomic(plan_.output_dir / "trainer_state.json", state.dump(2) + "\n");
  if (script_ == foreign::Script::flair_ner) add_flair_losses();
  add("train", metrics);
}

// A row per epoch, as Flair's loss.tsv: the mean training loss of the epoch and the evaluation at its end.
void ScriptResults::add_flair_losses() const {
  std::string lines =
      "EPOCH\tLEARNING_RATE\tTRAIN_LOSS\tDEV_LOSS\tDEV_PRECISION\tDEV_RECALL\tDEV_F1\tDEV_ACCURACY\n";
  double loss = 0, steps = 0, last_step = 0, rate = 0;
  int epoch = 0;
  for (const Json& record : records(run() / "metrics.jsonl")) {
    if (record.contains("loss") && record["loss"].is_number() && !record.contains("eval_loss")) {
      const double step = record.value("step", 0.0);
      loss += record["loss"].get<double>() * (step - last_step);
      steps += step - last_step;
      last_step = step;
      rate = record.value("lr", rate);
    }
    if (!record.contains("eval_f1")) continue;
    const auto value = [&](const char* name) { return record.value(std::string("eval_") + name, 0.0); };
    lines += fmt::format("{}\t{:.6f}\t{}\t{}\t{:.4f}\t{:.4f}\t{:.4f}\t{:.4f}\n", ++epoch, rate,
                         steps > 0 ? loss / steps : 0, value("loss"), value("precision"), value("recall"),
                         value("f1"), value("accuracy"));
    loss = steps = 0;
  }
  write_file_atomic(plan_.output_dir / "loss.tsv", lines);
}

// "token gold predicted" with spaces, in BIO whatever the model's scheme.
void ScriptResults::add_flair_predictions(const std::string& stage) const {
  std::string lines;
  const auto in_bio = [](const Json& tags) {
    const auto names = tags.get<std::vector<std::string>>();
    return corpus::write_tags(corpus::lenient_spans(names), names.size(), corpus::TagScheme::iob2);
  };
  for (const Json& record : records(run() / "predictions.jsonl")) {
    const auto predicted = in_bio(record.at("tags"));
    const auto gold = record.contains("gold") ? in_bio(record["gold"]) : predicted;
    size_t i = 0;
    for (const Json& token : record.at("tokens")) {
      lines += fmt::format("{} {} {}\n", token.get<std::string>(), gold[i], predicted[i]);
      ++i;
    }
    lines += "\n";
  }
  write_file_atomic(plan_.output_dir / (stage == "eval" ? "dev.tsv" : "test.tsv"), lines);
}

void ScriptResults::add_test(const std::string& stage) {
  add_predictions(stage);
  if (!std::filesystem::exists(run() / "test_results.json")) return;  // no gold labels
  const nlohmann::json results = read_json(run() / "test_results.json");
  const bool ner = script_ == foreign::Script::ner || script_ == foreign::Script::flair_ner;
  const Json named = ner                                ? ner_metrics(results)
                     : script_ == foreign::Script::glue ? plain_metrics(results)
                                                        : Json(results);
  Json metrics = Json::object();
  if (all_.contains("epoch")) metrics["epoch"] = all_["epoch"];
  for (const auto& [name, value] : named.items()) {
    // run_qa does not prefix the metrics of the official scripts in what it prints.
    const bool bare = script_ == foreign::Script::qa && name != "loss";
    metrics[(bare ? "" : stage + "_") + name] = value;
  }
  add(stage, metrics);
}

void ScriptResults::add(const std::string& stage, const Json& metrics) {
  Json prefixed = Json::object();
  size_t width = 0;
  for (const auto& [name, value] : metrics.items()) {
    width = std::max(width, name.size());
    const bool has_prefix = name == "epoch" || name.starts_with(stage + "_");
    prefixed[has_prefix ? name : stage + "_" + name] = value;
  }
  std::cout << "***** " << stage << " metrics *****\n";
  for (const auto& [name, value] : metrics.items())
    std::cout << "  " << name << std::string(width - name.size(), ' ') << " = " << shown(name, value) << "\n";
  command::flush_standard_output();
  all_.update(prefixed);
  write_file_atomic(plan_.output_dir / (stage + "_results.json"), prefixed.dump(4) + "\n");
  write_file_atomic(plan_.output_dir / "all_results.json", all_.dump(4) + "\n");
}

void ScriptResults::add_predictions(const std::string& stage) const {
  if (script_ == foreign::Script::qa) {
    for (const char* name : {"predictions.json", "nbest_predictions.json", "null_odds.json"}) {
      const std::filesystem::path target = plan_.output_dir / (stage + "_" + name);
      std::filesystem::remove(target);
      if (std::filesystem::exists(run() / name)) std::filesystem::copy_file(run() / name, target);
    }
    return;
  }
  if (script_ == foreign::Script::flair_ner) return add_flair_predictions(stage);
  if (stage != "predict") return;
  std::string lines = script_ == foreign::Script::glue ? "index\tprediction\n" : "";
  size_t index = 0;
  for (const Json& record : records(run() / "predictions.jsonl")) {
    if (script_ == foreign::Script::glue) {
      lines += record.contains("prediction")
                   ? fmt::format("{}\t{:3.3f}\n", index++, record["prediction"].get<double>())
                   : fmt::format("{}\t{}\n", index++,
                                 metrics::spelled_label(record.at("label").get<std::string>()));
      continue;
    }
    std::string tags;
    for (const Json& tag : record.at("tags")) tags += (tags.empty() ? "" : " ") + tag.get<std::string>();
    lines += tags + "\n";
  }
  std::string name = "predictions.txt";
  if (script_ == foreign::Script::glue)
    name = plan_.glue_task.empty() ? "predict_results.txt" : "predict_results_" + plan_.glue_task + ".txt";
  write_file_atomic(plan_.output_dir / name, lines);
}

}  // namespace stretto::cli
