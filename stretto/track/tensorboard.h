#pragma once

#include <filesystem>
#include <optional>

#include "stretto/base/files.h"
#include "stretto/track/tracker.h"

namespace stretto {

// Event files for TensorBoard (`tensorboard --logdir FOLDER`): the curves train/... and eval/... over steps, the settings
// as text. A run that goes on writes a file of its own, which says from where on it replaces what the files before say, so
// that TensorBoard shows each step once, also while it is watching.
class TensorBoard : public Tracker {
 public:
  explicit TensorBoard(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;

 private:
  std::filesystem::path folder_;
  TrackedRun run_;
  std::optional<AppendFile> file_;
};

}  // namespace stretto
