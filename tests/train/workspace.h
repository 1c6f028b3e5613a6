#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/shell.h"
#include <nlohmann/json.hpp>

#include "stretto/base/temp_folder.h"

namespace stretto {

// A folder with all that a small run needs, written by the test: model/ (the config.json and vocab.txt of a BERT of two
// layers x 32, dropout 0.1), train.tsv of 64 rows and dev.tsv of 23, and recipe.yaml, which trains in float64 on one
// rank of the CPU into run/.
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

  // A run whose results lie in the folder `name` afterwards. Fails the test where it does not end well.
  void train(const std::string& name, int ranks, const std::string& settings = "") const;

  // The run folder's metrics.jsonl, and the loss of each of its training steps.
  std::vector<nlohmann::json> metrics(const std::string& run) const;
  std::vector<double> losses(const std::string& run) const;

 private:
  TempFolder folder_;
};

// `count` rows "text<TAB>label" behind a header. Texts differ in length; their label tells whether good words outnumber bad
// ones, so that a model can learn it. The same seed gives the same rows.
std::string make_rows(int count, uint64_t seed);

// The float tensors of a safetensors file.
using Weights = std::map<std::string, std::vector<double>>;
Weights read_weights(const std::filesystem::path& file);

// The JSON objects of a file with one a line.
std::vector<nlohmann::json> read_json_lines(const std::string& text);

// The largest |a - b| / max(|a|, |b|) of two equally long lists.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b);

// The largest difference of two models' weights, each tensor measured by its largest value. Weights that are zero but for
// rounding (a bias that cannot change the loss) are measured by `floor`.
double weight_difference(const Weights& a, const Weights& b, double floor = 1e-3);

}  // namespace stretto
