#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/compat/flag_places.h"

namespace stretto::compat {

// The supported scripts: Hugging Face's run_glue.py, run_ner.py, run_qa.py and run_clm.py, Flair's
// custom_run_ner.py, and NeuronxDistributed's run_llama_nxd_ptl.py.
enum class Script { glue, ner, qa, clm, flair_ner, llama };

// The translation of a script's command line.
struct ScriptPlan {
  std::string recipe;          // YAML: a complete recipe, whose output is run_folder()
  bool is_run_folder = false;  // output_dir is the run folder, not a folder with it and the script's results
  FlagPlaces flags;            // the flags of the lines of recipe_file()
  std::filesystem::path output_dir;
  bool overwrite = false;
  bool resume = false;  // the same command resumes an unfinished run, regardless of `overwrite`
  bool train = false, evaluate = false, predict = false;
  std::filesystem::path model;                            // model_name_or_path
  std::optional<std::filesystem::path> validation, test;  // files
  std::string max_eval_samples = "null";        // samples of the validation file, as a setting; null: all
  bool entity_level = false;                    // run-ner: report metrics per entity type
  std::optional<int64_t> ranks = std::nullopt;  // ranks on this host, if the flags set them
  std::string glue_task;                        // text_classification.glue_task; empty without one
  // For run-clm without a validation file: this percentage of the lines of the training file `split_file` is
  // written to split_folder/validation.*, the others to split_folder/train.*, before the first stage.
  double split_percentage = 0;
  std::filesystem::path split_file = {}, split_folder = {};  // "": nothing is split
  std::vector<std::string> notes;                            // ignored flags, each with the reason

  // The folder of the run. Evaluation has its own folder, so that it does not change a training run in
  // output_dir.
  std::filesystem::path run_folder() const {
    return is_run_folder ? output_dir : output_dir / (train ? "run" : "evaluation");
  }
  std::filesystem::path recipe_file() const {
    return output_dir / (train ? "recipe.yaml" : "evaluation.yaml");
  }
};

// Translates the script's flags ("--do_train", "--max_seq_length", "384", "--fp16=True"), or the flags in a
// .json file. Defaults are the script's. Throws ConfigError, which names the flag, for unknown flags,
// unsupported values and missing flags. REQUIRES: script is one of Hugging Face's; see flair_script.h and
// llama_script.h for the others.
ScriptPlan translate_script(Script script, const std::vector<std::string>& arguments);

}  // namespace stretto::compat
