#pragma once

#include <filesystem>
#include <optional>

#include "stretto/base/file_writer.h"
#include "stretto/track/tracker.h"

namespace stretto::track {

// Writes event files for TensorBoard (`tensorboard --logdir FOLDER`): the curves train/... and eval/... over
// steps, the settings as text and as hyperparameters, histograms and images. A resumed run writes a new file,
// which marks the step from which it replaces earlier files, so that TensorBoard shows each step once, even
// if it is already running.
class TensorBoard : public Tracker {
 public:
  explicit TensorBoard(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::string name() const override { return folder_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;
  void write_text(int64_t step, const std::string& name, const std::string& markdown) override;
  void write_histogram(int64_t step, const std::string& name, const Histogram& histogram) override;
  void write_image(int64_t step, const std::string& name, const Image& image) override;
  void end(RunEnd how) override;

 private:
  void append(const std::string& event);

  std::filesystem::path folder_;
  TrackedRun run_;
  std::optional<AppendFile> file_;
};

}  // namespace stretto::track
