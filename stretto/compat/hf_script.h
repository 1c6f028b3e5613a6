#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/compat/flag_places.h"

namespace stretto::compat {

// Hugging Face's example scripts run_glue.py, run_ner.py and run_qa.py; Flair's custom_run_ner.py.
enum class Script { glue, ner, qa, flair_ner };

// What the command line of a script asks for.
struct ScriptPlan {
  std::string recipe;  // YAML: a complete recipe, whose output is run_folder()
  FlagPlaces flags;    // of the lines of recipe_file()
  std::filesystem::path output_dir;
  bool overwrite = false;
  bool resume = false;  // the same command continues a run that has not finished, whatever overwrite is
  bool train = false, evaluate = false, predict = false;
  std::filesystem::path model;                            // model_name_or_path
  std::optional<std::filesystem::path> validation, test;  // files
  std::string max_eval_samples = "null";  // of the validation file, as a setting: all, or the first so many
  bool entity_level = false;              // run-ner: metrics of each type
  std::optional<int64_t> ranks = std::nullopt;  // on this host, if the flags say so
  std::string glue_task;                        // as text_classification.glue_task, else empty
  std::vector<std::string> notes;               // flags without a meaning here, each with the reason

  // Evaluating a model leaves the run that trained one in the same output_dir as it is.
  std::filesystem::path run_folder() const { return output_dir / (train ? "run" : "evaluation"); }
  std::filesystem::path recipe_file() const {
    return output_dir / (train ? "recipe.yaml" : "evaluation.yaml");
  }
};

// Translates the script's flags ("--do_train", "--max_seq_length", "384", "--fp16=True"), or those in a .json file. Defaults are the script's. Throws
// ConfigError, which names the flag, for unknown flags, values that cannot be honoured and missing ones. REQUIRES: not flair_ner,
// for which there is flair_script.h.
ScriptPlan translate_script(Script script, const std::vector<std::string>& arguments);

}  // namespace stretto::compat
