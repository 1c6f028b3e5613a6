#include "stretto/track/mlflow_run.h"

#include <cstdlib>

#include <fcntl.h>
#include <sys/file.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/http.h"
#include "stretto/base/json.h"
#include "stretto/settings/yaml.h"
#include "stretto/track/mlflow_server.h"

namespace stretto::track {
namespace {

std::filesystem::path sent_file(const std::filesystem::path& folder) {
  return folder / "mlflow" / "sent.json";
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

// The settings of a run from which its trackers were created.
TrackerSetup setup_of(const settings::YamlNode& config) {
  TrackerSetup setup;
  const auto text = [](const settings::YamlNode* section, const char* name) -> std::optional<std::string> {
    const settings::YamlNode* node = section == nullptr ? nullptr : section->find(name);
    return node == nullptr || node->kind != settings::YamlNode::Kind::scalar ? std::nullopt
                                                                             : std::optional(node->text);
  };
  const settings::YamlNode* track = config.find("track");
  setup.folder = text(&config, "output").value_or("");
  setup.logging_dir = text(track, "logging_dir");
  setup.experiment = text(track, "experiment");
  setup.run_name = text(track, "run_name");
  if (const auto* tags = track == nullptr ? nullptr : track->find("tags"))
    for (const settings::YamlNode& tag : tags->children) setup.tags.push_back(tag.text);
  return setup;
}

}  // namespace

std::optional<std::string> mlflow_uri(const TrackerSetup& setup) {
  return setup.has_url() ? setup.logging_dir : variable("MLFLOW_TRACKING_URI");
}

void check_mlflow(const TrackerSetup& setup) {
  const auto uri = mlflow_uri(setup);
  if (!uri) {
    throw ConfigError(
        "mlflow needs the URL of a server; set track.logging_dir: http://HOST:5000, or the variable MLFLOW_TRACKING_URI");
  }
  check_mlflow_uri(*uri, setup.has_url() ? "track.logging_dir" : "MLFLOW_TRACKING_URI");
  require_http();
}

MlflowRun read_mlflow_run(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.yaml";
  const settings::YamlNode config = settings::parse_yaml(read_file(file), file.string());
  const TrackerSetup setup = setup_of(config);
  MlflowRun run{.uri = mlflow_uri(setup).value_or(""), .name = setup.name_of_run()};
  if (const auto named = setup.experiment ? setup.experiment : variable("MLFLOW_EXPERIMENT_NAME"))
    run.experiment = *named;
  for (const std::string& tag : setup.tags)
    run.tags[tag.substr(0, tag.find('='))] = tag.substr(tag.find('=') + 1);
  if (const auto user = variable("USER")) run.tags["mlflow.user"] = *user;
  run.tags["mlflow.source.name"] = "stretto";
  constexpr size_t longest = 500;  // limit of older servers
  for (const auto& [name, value] : settings::texts_by_name(config))
    run.parameters[name] = value.substr(0, longest);
  return run;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MlflowSent, uri, experiment, id, started, experiment_id, run_id, artifacts,
                                   status, creating, training, evaluation, files)

std::optional<MlflowSent> read_mlflow_sent(const std::filesystem::path& folder) {
  const std::filesystem::path path = sent_file(folder);
  const std::string text = read_if_exists(path);
  if (text.empty()) return std::nullopt;
  try {
    return parse_json(text, path.string()).get<MlflowSent>();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(
        "{}: it was not written by this version of stretto: {}; remove it to send everything to a new run",
        path.string(), error.what());
  }
}

void save_mlflow_sent(const std::filesystem::path& folder, const MlflowSent& sent) {
  const nlohmann::json text = sent;
  write_file_atomic(sent_file(folder),
                    text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void remove_mlflow_sent(const std::filesystem::path& folder) {
  std::error_code missing;
  std::filesystem::remove(sent_file(folder), missing);
}

Fd lock_mlflow(const std::filesystem::path& folder) {
  make_folders(folder / "mlflow");
  Fd fd(::open((folder / "mlflow" / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

}  // namespace stretto::track
