#include "stretto/config/tracker_setup.h"

namespace stretto {

TrackerSetup tracker_setup(const Recipe& recipe) {
  const TrackConfig& track = recipe.track;
  return {recipe.output, track.logging_dir, track.experiment, track.run_name, track.tags};
}

}  // namespace stretto
