#include "stretto/trainer/folder/run_folder.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/numbered_name.h"
#include "stretto/checkpoint_format/folder.h"

namespace stretto::trainer {
namespace {

// If it cannot be removed now, the next save_model() removes it.
void discard(const std::filesystem::path& fresh) {
  try {
    remove_folder(fresh);
  } catch (const IoError& error) {
    log::warning("{}", error.what());
  }
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path path)
    : path_(std::move(path)), made_(path_), previous_(path_ / "previous.new") {
  write_text(".writable", "");
  std::filesystem::remove(path_ / ".writable");
}

void RunFolder::begin_run(const std::string& config, EarlierFiles earlier) const {
  if (earlier != EarlierFiles::continued) set_aside(earlier == EarlierFiles::kept && holds_results());
  name_previous();
  write_text("config.yaml", config);
}

// previous.new exists after a set_aside() that was interrupted.
bool RunFolder::holds_results() const {
  return std::filesystem::exists(previous_) || std::filesystem::exists(model()) ||
         std::filesystem::exists(path_ / "models") ||
         !checkpoint_format::list_checkpoints(path_ / "checkpoints").empty();
}

// Moves the earlier run to previous.new, which is renamed once it is complete. If a call fails or the process
// dies, the next call continues: checkpoints are moved first, so that no run can continue with a part of the
// files.
void RunFolder::set_aside(bool keep) const {
  for (const char* name : {"checkpoints",
                           "metrics.jsonl",
                           "metrics.csv",
                           "texts.jsonl",
                           "progress.json",
                           "tensorboard",
                           "mlflow",
                           "results.json",
                           "dev_results.json",
                           "test_results.json",
                           "test_summary.json",
                           "predictions.jsonl",
                           "predictions.txt",
                           "predictions.json",
                           "nbest_predictions.json",
                           "null_odds.json",
                           "losses.jsonl",
                           "most_wrong.jsonl",
                           "report.html",
                           "flight_record.json",
                           "summary.json",
                           "config.yaml",
                           "model",
                           "models"}) {
    const std::filesystem::path file = path_ / name;
    if (!std::filesystem::exists(file)) continue;
    if (!keep) {
      remove_folder(file);  // remove_folder() also removes files
      continue;
    }
    make_folders(previous_);
    remove_folder(previous_ / name);
    rename_folder(file, previous_ / name);
  }
}

void RunFolder::name_previous() const {
  if (!std::filesystem::exists(previous_)) return;
  const std::filesystem::path named = next_numbered(path_ / "previous");
  rename_folder(previous_, named);
  log::info("the earlier run in {} was moved to {}", path_.string(), named.string());
}

void RunFolder::write_text(const std::string& name, const std::string& content) const {
  write_file_atomic(path_ / name, content);
}

void RunFolder::write_json(const std::string& name, const nlohmann::ordered_json& content) const {
  write_text(name, content.dump(2) + "\n");
}

void RunFolder::save_model(const Module& module, const ListedSource& weights, const std::string& name,
                           const nlohmann::ordered_json& state) const {
  const std::filesystem::path fresh = path_ / (name + ".new");
  remove_folder(fresh);
  try {
    make_folders(fresh);
    module.save(fresh, weights);
    if (!state.is_null()) write_json(name + ".new/state.json", state);
    replace_folder(fresh, path_ / name);
  } catch (...) {
    discard(fresh);
    throw;
  }
}

}  // namespace stretto::trainer
