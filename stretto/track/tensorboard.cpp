#include "stretto/track/tensorboard.h"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "stretto/base/clock.h"
#include "stretto/base/files.h"
#include "stretto/base/process.h"
#include "stretto/base/strings.h"
#include "stretto/track/tfevents.h"

namespace stretto::track {
namespace {

constexpr std::string_view prefix = "events.out.tfevents.";

// The time in an event file's name, by which TensorBoard orders the files of a folder; 0 for other files.
int64_t second_of(const std::string& name) {
  if (!name.starts_with(prefix)) return 0;
  return parse_int(split(std::string_view(name).substr(prefix.size()), '.')[0]).value_or(0);
}

std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (second_of(entry.path().filename().string()) > 0) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

void TensorBoard::begin(const TrackedRun& run) {
  run_ = run;
  file_.reset();
  make_folders(folder_);
  auto second = static_cast<int64_t>(seconds_since_1970());
  for (const auto& file : event_files(folder_)) {
    if (run.steps_done == 0) std::filesystem::remove(file);
    second = std::max(second, second_of(file.filename().string()) + 1);
  }
  AppendFile file(folder_ / fmt::format("{}{:010}.{}.{}.0", prefix, second, host_name(), ::getpid()));
  const double time = seconds_since_1970();
  std::string records = tfevents::as_record(tfevents::version(time));
  if (run.steps_done > 0) records += tfevents::as_record(tfevents::restart(time, run.steps_done + 1));
  records += tfevents::as_record(
      tfevents::text(time, run.steps_done, "recipe", "```yaml\n" + run.settings + "```\n"));
  if (!run.parameters.empty()) {
    records += tfevents::as_record(tfevents::hparams(time, run.parameters, {"train/loss"}));
    records += tfevents::as_record(tfevents::hparams_start(time, run.parameters));
  }
  file.write(records);
  file_.emplace(std::move(file));
}

void TensorBoard::append(const std::string& event) {
  if (!file_) begin(run_);  // retries after begin() has failed
  file_->write(tfevents::as_record(event));
}

void TensorBoard::write(const Record& record) {
  std::vector<std::pair<std::string, double>> curves = record.values;
  for (auto& [name, value] : curves) name = (record.evaluation ? "eval/" : "train/") + name;
  append(tfevents::scalars(seconds_since_1970(), record.step, curves));
}

void TensorBoard::write_text(int64_t step, const std::string& name, const std::string& markdown) {
  append(tfevents::text(seconds_since_1970(), step, name, markdown));
}

void TensorBoard::write_histogram(int64_t step, const std::string& name, const Histogram& histogram) {
  append(tfevents::histogram(seconds_since_1970(), step, name, histogram));
}

void TensorBoard::write_image(int64_t step, const std::string& name, const Image& image) {
  append(tfevents::image(seconds_since_1970(), step, name, image));
}

void TensorBoard::end(RunEnd how) {
  if (!run_.parameters.empty()) append(tfevents::hparams_end(seconds_since_1970(), how != RunEnd::failed));
}

}  // namespace stretto::track
