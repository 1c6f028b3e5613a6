#include "stretto/trainer/folder/model_saver.h"

#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/replaced_folder.h"

namespace stretto::trainer {

ModelSaver::ModelSaver(const RunFolder& folder, const Module& module, std::string name)
    : folder_(folder), module_(module), name_(std::move(name)), at_start_(identity()) {
  restore_replaced(folder_.path() / name_);  // an earlier process may have died in save()
}

ModelSaver::Identity ModelSaver::identity() const {
  struct stat status {};
  if (::stat(folder_.path().c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

// If the folder was replaced, its new content is used nevertheless, because users expect the model at this
// path.
void ModelSaver::note_folder() {
  if (folder_lost_ || identity() == at_start_) return;
  folder_lost_ = true;
  log::warning(
      "{}: the output folder was removed, renamed or replaced during the run; its earlier files are missing. Further files are written into a new folder",
      folder_.path().string());
}

void ModelSaver::save(const ListedSource& weights, const nlohmann::ordered_json& state) {
  note_folder();
  try {
    folder_.save_model(module_, weights, name_, state);
    waiting_.reset();
    failure_.clear();
    saved_ = true;
  } catch (const IoError& error) {
    if (failure_.empty()) log::warning("the model was not saved: {}; saving will be retried", error.what());
    failure_ = error.what();
    if (waiting_ && &weights == &*waiting_) return;
    waiting_state_ = state;
    waiting_.reset();
    NamedTensors copies;
    for (const auto& [name, type] : weights.types()) copies[name] = weights.copy(name);
    waiting_.emplace(std::move(copies));
  }
}

void ModelSaver::retry() {
  if (failure_.empty()) return;
  save(*waiting_, waiting_state_);
  if (failure_.empty()) log::info("saved the model after an earlier failure");
}

std::string ModelSaver::finish() {
  retry();
  if (!failure_.empty()) return "the model was not saved: " + failure_;
  std::error_code none;
  if (!saved_ || std::filesystem::exists(folder_.path() / name_, none)) return "";
  return fmt::format(
      "{}: the saved model was removed or renamed during the run, and its weights are no longer in memory; restore the folder, or train again",
      (folder_.path() / name_).string());
}

}  // namespace stretto::trainer
