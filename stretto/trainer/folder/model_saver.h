#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "stretto/trainer/folder/run_folder.h"

namespace stretto::trainer {

// Writes the model of a run, on rank 0. If writing fails (a full disk), training continues: the weights are
// kept in memory and written at the next opportunity. If that fails too, the run fails at its end.
class ModelSaver {
 public:
  // `folder` and `module` must outlive it. `name`: the model's folder in the run folder.
  ModelSaver(const RunFolder& folder, const Module& module, std::string name = "model");

  // Writes these weights, or keeps a copy of them for retry() and logs the reason. `state`: see
  // RunFolder::save_model().
  void save(const ListedSource& weights, const nlohmann::ordered_json& state = nullptr);

  // Writes the weights that could not be written before, if any.
  void retry();

  // Writes the remaining weights at the end of the run. Returns the reason if the folder does not contain the
  // model that was saved last, because it could not be written, or because the folder was removed, renamed or
  // replaced during the run; else "".
  std::string finish();

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  Identity identity() const;
  void note_folder();

  const RunFolder& folder_;
  const Module& module_;
  const std::string name_;
  Identity at_start_;
  std::optional<MemorySource> waiting_;  // a copy of the weights that could not be written
  nlohmann::ordered_json waiting_state_;
  std::string failure_;  // the reason
  bool saved_ = false;
  bool folder_lost_ = false;
};

}  // namespace stretto::trainer
