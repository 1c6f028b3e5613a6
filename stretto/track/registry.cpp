#include "stretto/track/registry.h"

#include "stretto/base/registry.h"
#include "stretto/track/csv_log.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/mlflow.h"
#include "stretto/track/results_file.h"
#include "stretto/track/tensorboard.h"

namespace stretto {
namespace {

Registry<TrackerKind>& kinds() {
  static Registry<TrackerKind> all(
      "a tracker",
      {{"jsonl", "metrics.jsonl in the output folder, one JSON object per record, which every run writes",
        [](const TrackerSetup& setup) {
          return std::make_shared<track::MetricsLog>(setup.folder / "metrics.jsonl");
        }},
       {"csv", "metrics.csv at the end of the run, one row per record",
        [](const TrackerSetup& setup) {
          return std::make_shared<track::CsvLog>(setup.folder / "metrics.jsonl",
                                                 setup.files() / "metrics.csv");
        }},
       {"tensorboard", "event files in tensorboard/",
        [](const TrackerSetup& setup) {
          return std::make_shared<track::TensorBoard>(setup.files() / "tensorboard");
        }},
       {"results", "results.json, loss and throughput as NeuronxDistributed's scripts write them",
        [](const TrackerSetup& setup) {
          return std::make_shared<track::ResultsFile>(setup.folder / "results.json");
        }},
       {"mlflow", "an MLflow server",
        [](const TrackerSetup& setup) { return track::make_mlflow_tracker(setup); },
        [](const TrackerSetup& setup) { track::check_mlflow(setup); }}});
  return all;
}

}  // namespace

bool TrackerSetup::has_url() const { return logging_dir && logging_dir->find("://") != std::string::npos; }

std::string TrackerSetup::name_of_run() const {
  if (run_name) return *run_name;
  const std::filesystem::path named = folder.has_filename() ? folder : folder.parent_path();
  return named.filename().string();
}

std::filesystem::path TrackerSetup::files() const {
  return logging_dir && !has_url() ? std::filesystem::path(*logging_dir) / name_of_run() : folder;
}

void register_tracker(TrackerKind kind) { kinds().add(std::move(kind)); }
const std::vector<TrackerKind>& tracker_kinds() { return kinds().entries(); }
std::vector<std::string> tracker_names() { return kinds().names(); }
const TrackerKind& find_tracker(const std::string& name) { return kinds().at(name, "track.trackers"); }

}  // namespace stretto
