#include "stretto/track/trackers.h"

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"

namespace stretto::track {

template <class Call>
void Trackers::each(bool is_record, const Call& call) {
  for (Held& held : held_) {
    try {
      call(*held.tracker);
      if (!held.failed || !is_record) continue;
      log::warning("{} can be written again; {} missing", held.tracker->name(),
                   held.lost == 1 ? "1 record is" : fmt::format("{} records are", held.lost));
      held.failed = false;
      held.lost = 0;
    } catch (const IoError& error) {
      held.lost += is_record;
      if (held.failed) continue;
      held.failed = true;
      log::warning("{}; training continues, but this file will be incomplete", error.what());
    }
  }
}

void Trackers::begin(const TrackedRun& run) {
  each(false, [&](Tracker& tracker) { tracker.begin(run); });
}
void Trackers::write(const Record& record) {
  each(true, [&](Tracker& tracker) { tracker.write(record); });
}
void Trackers::step(const Record& record) {
  each(false, [&](Tracker& tracker) { tracker.step(record); });
}
void Trackers::pause() {
  each(false, [](Tracker& tracker) { tracker.pause(); });
}
void Trackers::write_text(int64_t step, const std::string& name, const std::string& markdown) {
  each(true, [&](Tracker& tracker) { tracker.write_text(step, name, markdown); });
}
void Trackers::write_histogram(int64_t step, const std::string& name, const Histogram& histogram) {
  each(true, [&](Tracker& tracker) { tracker.write_histogram(step, name, histogram); });
}
void Trackers::write_image(int64_t step, const std::string& name, const Image& image) {
  each(true, [&](Tracker& tracker) { tracker.write_image(step, name, image); });
}
void Trackers::write_artifact(const std::filesystem::path& file) {
  each(false, [&](Tracker& tracker) { tracker.write_artifact(file); });
}
void Trackers::end(RunEnd how) {
  each(false, [&](Tracker& tracker) { tracker.end(how); });
}

}  // namespace stretto::track
