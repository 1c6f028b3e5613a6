#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/fd.h"
#include "stretto/base/files.h"

namespace stretto {

// What a run has to send to an MLflow server, in the folder `mlflow` of the run: outbox.jsonl, to which the run appends
// one entry per line, and sent.json, how far a sender has come. An entry has one key:
//   {"run": {"uri", "experiment", "name", "time", "tags", "id"}}    always the first
//   {"params": {NAME: TEXT}}   {"metrics": [[KEY, VALUE, STEP], ...], "time": MS}
//   {"status": "FINISHED", "time": MS}   {"artifact": FILE}         relative to the run folder
namespace mlflow_outbox {

std::filesystem::path folder_of(const std::filesystem::path& run);

// The writing end.
class Writer {
 public:
  // Continues the outbox of `run`, or begins an empty one. Throws IoError.
  Writer(const std::filesystem::path& run, bool continues);

  bool empty() const { return empty_; }
  // The last steps in the outbox: of training, and of evaluations.
  int64_t last_step(bool evaluation) const { return evaluation ? last_evaluation_ : last_training_; }
  void append(const nlohmann::json& entry);

 private:
  void read_last_steps(const std::string& text);

  bool empty_ = true;
  int64_t last_training_ = -1, last_evaluation_ = -1;
  std::optional<AppendFile> file_;
};

// How far a sender has come.
struct Sent {
  int64_t position = 0;  // bytes of outbox.jsonl
  std::string uri, experiment_id, run_id, artifacts;
  bool creating = false;  // a run was being created when this was saved
};

Sent read_sent(const std::filesystem::path& run);
void save_sent(const std::filesystem::path& run, const Sent& sent);

// The next entries, at most `count`, each with the position after it. An unfinished last line is left out.
struct Entry {
  nlohmann::json content;
  int64_t end = 0;
};
std::vector<Entry> read_entries(const std::filesystem::path& run, int64_t position, size_t count);

// The number of entries that are not sent.
int64_t count_unsent(const std::filesystem::path& run, int64_t position);

// Taken by whoever sends; invalid if another process has it.
Fd lock(const std::filesystem::path& run);

}  // namespace mlflow_outbox
}  // namespace stretto
