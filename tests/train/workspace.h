#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/shell.h"
#include <nlohmann/json.hpp>

#include "stretto/base/temp_folder.h"

namespace stretto {

// A folder with everything that a small run needs: model/ (config.json and vocab.txt of a BERT of two layers
// x 32, dropout 0.1), train.tsv with 64 rows, dev.tsv with 23, and recipe.yaml, which trains in float64 on
// one CPU rank into run/.
//
// Settings are given as on the command line: "training.max_steps=3 track.log_every=2".
class Workspace {
 public:
  Workspace();

  std::string path(const std::string& name = "") const { return folder_.path() / name; }
  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;

  // "stretto VERB recipe.yaml -N RANKS --set ...", for a shell.
  std::string command(const std::string& verb, int ranks, const std::string& settings = "") const;
  ShellResult run(const std::string& verb, int ranks, const std::string& settings = "") const;

  // Trains into the folder `name`. Fails the test if the run fails.
  void train(const std::string& name, int ranks, const std::string& settings = "") const;

  // The records of the run folder's metrics.jsonl; the loss of each training step.
  std::vector<nlohmann::json> metrics(const std::string& run) const;
  std::vector<double> losses(const std::string& run) const;
  // The number of whole lines in metrics.jsonl, whose last line may be partly written while the run
  // continues; 0 without it.
  int64_t recorded_lines(const std::string& run) const;

 private:
  TempFolder folder_;
};

// A header and `count` rows "text<TAB>label". Texts differ in length and contain either good words (label 1)
// or bad words (label 0), so that a model can learn them. The same seed gives the same rows.
std::string make_rows(int count, uint64_t seed);

// The float tensors of a safetensors file.
using Weights = std::map<std::string, std::vector<double>>;
Weights read_weights(const std::filesystem::path& file);

// Returns the JSON objects of a file with one object per line.
std::vector<nlohmann::json> read_json_lines(const std::string& text);

// The largest |a - b| / max(|a|, |b|) of two lists of equal length.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b);

// The largest difference of two models' weights, relative to the largest value of each tensor, or to `floor`
// for tensors that are zero up to rounding (a bias that cannot change the loss).
double weight_difference(const Weights& a, const Weights& b, double floor = 1e-3);

// Expects that both runs, in float64, took the same steps up to rounding.
void expect_same_steps(const Workspace& workspace, const std::string& a, const std::string& b);

}  // namespace stretto
