#pragma once

#include <memory>
#include <vector>

#include "stretto/track/tracker.h"

namespace stretto::track {

// Combines all trackers of a run; empty on ranks other than 0. An IoError of a tracker is not passed to the
// caller, but logged when it first occurs, and again when the tracker has recovered, with the number of lost
// records.
class Trackers : public Tracker {
 public:
  void add(std::shared_ptr<Tracker> tracker) { held_.push_back({std::move(tracker)}); }
  bool empty() const { return held_.empty(); }

  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;
  void step(const Record& record) override;
  void pause() override;
  void write_text(int64_t step, const std::string& name, const std::string& markdown) override;
  void write_histogram(int64_t step, const std::string& name, const Histogram& histogram) override;
  void write_image(int64_t step, const std::string& name, const Image& image) override;
  void write_artifact(const std::filesystem::path& file) override;
  void end(RunEnd how) override;

 private:
  struct Held {
    std::shared_ptr<Tracker> tracker;
    bool failed = false;
    int64_t lost = 0;  // records lost since the failure
  };
  template <class Call>
  void each(bool is_record, const Call& call);

  std::vector<Held> held_;
};

}  // namespace stretto::track
