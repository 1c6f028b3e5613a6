#pragma once

#include <filesystem>
#include <optional>

#include "stretto/base/files.h"
#include "stretto/track/tracker.h"

namespace stretto {

// Event files for TensorBoard (`tensorboard --logdir FOLDER`): the curves train/... and eval/... over steps, and the
// settings as text. A resumed run writes a new file, which marks the step from which it replaces earlier files, so that
// TensorBoard shows each step once, also while it is running.
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
