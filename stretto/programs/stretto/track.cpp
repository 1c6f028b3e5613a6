#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/http.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/track/mlflow_sender.h"

namespace stretto::cli {
namespace {

struct SyncArguments {
  std::vector<std::filesystem::path> runs;
  std::string uri;
};

// Sends what a run could not send. Throws MlflowError, ConfigError, IoError.
void sync(const std::filesystem::path& run, const std::optional<std::string>& uri) {
  if (!std::filesystem::exists(mlflow_outbox::folder_of(run) / "outbox.jsonl")) {
    throw ConfigError(
        "{} has nothing to send: it holds no mlflow/outbox.jsonl; expected the output folder of a run with track.trackers: [mlflow]",
        run.string());
  }
  const Fd lock = mlflow_outbox::lock(run);
  if (!lock)
    throw ConfigError("{}: a running job or another stretto track sync sends its values", run.string());
  MlflowSender sender(run, uri);
  const int64_t before = sender.unsent();
  int64_t refused = 0;
  while (true) {
    try {
      if (!sender.send_next()) break;
    } catch (const MlflowError& error) {
      if (error.kind != MlflowError::Kind::invalid) throw;
      fmt::print(stderr, "{}: {}; left out\n", run.string(), error.what());
      ++refused;
    }
  }
  const auto& sent = sender.sent();
  if (before == 0) {
    fmt::print("{}: everything was sent before (run {} on {})\n", run.string(), sent.run_id, sent.uri);
  } else {
    fmt::print("{}: sent {} to run {} on {}\n", run.string(), counted(before - refused, "record"),
               sent.run_id, uri.value_or(sent.uri));
  }
}

}  // namespace

void add_track(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("track", "Send the values of runs that an MLflow server did not take");
  verb->require_subcommand(1);
  CLI::App* command = verb->add_subcommand("sync", "Send what runs could not send to their MLflow server");
  auto arguments = std::make_shared<SyncArguments>();
  command->add_option("run", arguments->runs, "Output folders of runs")->required()->type_name("FOLDER");
  command->add_option("--uri", arguments->uri,
                      "URL of the server, if it has moved (default: the one the run was recorded with)");
  command->callback([arguments, &exit_code] {
    if (!arguments->uri.empty()) check_mlflow_uri(arguments->uri, "--uri");
    require_http();
    for (const auto& run : arguments->runs)
      sync(run, arguments->uri.empty() ? std::nullopt : std::optional(arguments->uri));
    exit_code = 0;
  });
}

}  // namespace stretto::cli
