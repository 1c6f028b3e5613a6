#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "stretto/compat/hf_script.h"
#include "stretto/programs/stretto/flair_results.h"

namespace stretto::cli {

// Writes the output of Hugging Face's example scripts to --output_dir, from the run folder in it: the model,
// trainer_state.json, STAGE_results.json, all_results.json and predictions; for Flair's script also Flair's
// files. Prints each stage's metrics as lines " name = value" below "***** STAGE metrics *****", which metric
// definitions of SageMaker jobs search for.
class ScriptResults {
 public:
  ScriptResults(compat::Script script, const compat::ScriptPlan& plan);

  void add_training();

  // `stage`: "eval" or "predict".
  void add_test(const std::string& stage);

 private:
  void add(const std::string& stage, const nlohmann::json& metrics);
  void add_predictions(const std::string& stage) const;
  nlohmann::json task_metrics(const nlohmann::json& results) const;
  std::filesystem::path run() const { return plan_.run_folder(); }

  compat::Script script_;
  const compat::ScriptPlan& plan_;
  FlairResults flair_;
  nlohmann::json all_ = nlohmann::json::object();
  nlohmann::json epoch_ = nullptr;  // set if this command has trained
};

}  // namespace stretto::cli
