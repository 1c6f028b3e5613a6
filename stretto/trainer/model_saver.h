#pragma once

#include <sys/types.h>

#include "stretto/trainer/run_folder.h"

namespace stretto {

// Writes the model of a run, at rank 0. What could not be written (a full disk) stays in memory, is written at the next
// chance, and fails the run at its end at the latest: training is worth more than the moment of a save.
class ModelSaver {
 public:
  // Both must outlive it.
  ModelSaver(const RunFolder& folder, const Module& module);

  // Writes these weights, or keeps a copy of them for retry() and logs the reason.
  void save(const NamedTensors& weights);

  // Writes what could not be written so far, if anything.
  void retry();

  // At the end of the run: throws IoError where the folder lacks the model that was saved last, because it could not be
  // written, or because the folder was removed, renamed or replaced during the run.
  void finish();

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
  Identity at_start_;
  NamedTensors waiting_;  // a copy of the weights that could not be written
  std::string failure_;   // and why
  bool saved_ = false;
  bool folder_lost_ = false;
};

}  // namespace stretto
