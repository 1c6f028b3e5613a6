#include "stretto/track/text_log.h"

#include "stretto/base/files.h"
#include "stretto/track/metrics_log.h"

namespace stretto::track {

void TextLog::begin(const TrackedRun& run) {
  file_.reset();
  if (!std::filesystem::exists(path_)) return;
  if (run.steps_done > 0) {
    write_file_atomic(path_, records_until(path_, run));
  } else {
    std::filesystem::remove(path_);
  }
}

void TextLog::write_text(int64_t step, const std::string& name, const std::string& markdown) {
  const nlohmann::ordered_json line = {{"step", step}, {"name", name}, {"text", markdown}};
  if (!file_) file_.emplace(path_);
  file_->write(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace stretto::track
