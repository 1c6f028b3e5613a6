#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/http.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/run_data.h"
#include "stretto/track/mlflow_sender.h"

namespace stretto::cli {
namespace {

struct SyncArguments {
  std::vector<std::filesystem::path> runs;
  std::string uri;
};

// Sends the unsent records of a run. Throws MlflowError, ConfigError, IoError, DataError.
void sync(const std::filesystem::path& run, const std::optional<std::string>& uri) {
  report::require_run(run);
  const Fd lock = track::lock_mlflow(run);
  if (!lock)
    throw ConfigError("{}: a running job or another stretto track sync sends its values", run.string());
  track::MlflowSender sender(run, uri);
  const bool complete = sender.unsent() == 0;
  while (sender.send_next()) {
  }
  const std::string place = fmt::format("run {} on {}", sender.sent().run_id, sender.uri());
  if (complete) {
    fmt::print("{}: everything was sent before ({})\n", run.string(), place);
  } else {
    fmt::print("{}: sent {} to {}\n", run.string(), counted(sender.records_sent(), "record"), place);
  }
}

}  // namespace

void add_track(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("track", "Send runs to an MLflow server");
  verb->require_subcommand(1);
  CLI::App* command =
      verb->add_subcommand("sync", "Send the values of runs that the server does not have yet");
  auto arguments = std::make_shared<SyncArguments>();
  command->add_option("run", arguments->runs, "Output folders of runs")->required()->type_name("FOLDER");
  command->add_option(
      "--uri", arguments->uri,
      "URL of the server (default: the one the run was recorded with, else MLFLOW_TRACKING_URI)");
  command->callback([arguments, &exit_code] {
    if (!arguments->uri.empty()) track::check_mlflow_uri(arguments->uri, "--uri");
    require_http();
    for (const auto& run : arguments->runs)
      sync(run, arguments->uri.empty() ? std::nullopt : std::optional(arguments->uri));
    exit_code = 0;
  });
}

}  // namespace stretto::cli
