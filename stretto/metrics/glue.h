#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto::metrics {

// A task of GLUE (Wang et al. 2018) and the metrics by which it is scored.
struct GlueTask {
  std::string name;                  // run_glue's name: "mnli"
  std::vector<std::string> labels;   // by id; empty for a regression (stsb)
  std::vector<std::string> metrics;  // accuracy, f1, matthews_correlation, pearson, spearmanr
};

const std::vector<GlueTask>& glue_tasks();

// Throws ConfigError, which lists the tasks, for an unknown name.
const GlueTask& glue_task(const std::string& name);

// The spelling of a label in data files: "1" for LABEL_1, the default name of class 1 in models; others
// unchanged.
std::string spelled_label(const std::string& name);

// The scores of Hugging Face's metric "glue", and their mean, combined_score, if there are several. Labels
// are names or ids of the task (1, LABEL_1), or numbers for stsb. A correlation with a constant is null.
// Throws DataError for other labels, with their position, and if gold and predictions differ in number.
nlohmann::ordered_json glue_scores(const GlueTask& task, std::span<const std::string> gold,
                                   std::span<const std::string> predicted);

}  // namespace stretto::metrics
