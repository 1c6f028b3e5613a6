#include <algorithm>
#include <memory>
#include <numeric>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/run_lock.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/stretto/find_checkpoints.h"
#include "stretto/programs/stretto/table.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

using checkpoint_format::Checkpoint;

struct CheckpointArguments {
  std::filesystem::path folder;
  std::vector<int64_t> steps;
  bool all = false;
  int64_t keep_last = 0;
};

int64_t size_on_disk(const std::filesystem::path& checkpoint) {
  int64_t bytes = 0;
  std::error_code gone;
  for (const auto& file : std::filesystem::directory_iterator(checkpoint, gone)) {
    const auto size = file.file_size(gone);
    if (!gone) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

std::string show_size(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string time_saved(const std::filesystem::path& checkpoint) {
  std::error_code missing;
  auto written = std::filesystem::last_write_time(checkpoint / checkpoint_format::manifest_name, missing);
  if (missing) written = std::filesystem::last_write_time(checkpoint, missing);
  if (missing) return "-";
  const std::chrono::duration<double> time = std::chrono::file_clock::to_sys(written).time_since_epoch();
  return local_time(time.count());
}

int list(const std::filesystem::path& folder) {
  std::vector<Cells> rows = {{"step", "saved", "ranks", "size", "score", "path"}};
  std::vector<std::string> damages;
  for (const Checkpoint& checkpoint : find_checkpoints(folder)) {
    std::string ranks = "?", score = "?";
    try {
      const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint.path);
      ranks = fmt::to_string(manifest.world_size);
      score = manifest.score ? fmt::format("{} {:.6g}", manifest.score->metric, manifest.score->value) : "-";
    } catch (const Error& error) {
      damages.push_back(error.what());
    }
    rows.push_back({fmt::to_string(checkpoint.step), time_saved(checkpoint.path), ranks,
                    show_size(size_on_disk(checkpoint.path)), score, checkpoint.path.string()});
  }
  print_table(rows);
  for (const std::string& damage : damages) log::error("{}", damage);
  return damages.empty() ? 0 : 1;
}

// Verifies checkpoints as checkpoint_format::verify does, and logs progress.
class ReadingProgress {
 public:
  explicit ReadingProgress(const std::vector<Checkpoint>& checkpoints)
      : progress_("reading checkpoints",
                  std::transform_reduce(checkpoints.begin(), checkpoints.end(), int64_t{0}, std::plus(),
                                        [](const Checkpoint& one) { return size_on_disk(one.path); }),
                  "bytes") {}

  void verify(const Checkpoint& checkpoint) {
    progress_.describe(fmt::format("reading step {}", checkpoint.step));
    checkpoint_format::verify(checkpoint.path, [this](int64_t bytes) { progress_.add(bytes); });
  }

 private:
  ProgressBar progress_;
};

int verify_all(const std::filesystem::path& folder) {
  const auto checkpoints = find_checkpoints(folder);
  ReadingProgress progress(checkpoints);
  bool all_valid = true;
  for (const Checkpoint& checkpoint : checkpoints) {
    std::string finding = "valid";
    try {
      progress.verify(checkpoint);
    } catch (const Error& error) {
      finding = error.what();
      all_valid = false;
    }
    fmt::print("step {}: {}\n", checkpoint.step, finding);
    std::fflush(stdout);
  }
  return all_valid ? 0 : 1;
}

std::vector<Checkpoint> of_steps(const std::vector<Checkpoint>& checkpoints,
                                 const std::vector<int64_t>& steps) {
  std::vector<int64_t> known;
  for (const Checkpoint& checkpoint : checkpoints) known.push_back(checkpoint.step);
  for (const int64_t step : steps) {
    if (std::ranges::find(known, step) != known.end()) continue;
    throw ConfigError("--step {}: there is no checkpoint of that step; found {}", step,
                      fmt::join(known, ", "));
  }
  std::vector<Checkpoint> chosen;
  std::ranges::copy_if(checkpoints, std::back_inserter(chosen), [&](const Checkpoint& checkpoint) {
    return std::ranges::find(steps, checkpoint.step) != steps.end();
  });
  return chosen;
}

// Verifies checkpoints from the newest on until one is valid; null if there is none.
const Checkpoint* newest_valid(const std::vector<Checkpoint>& checkpoints) {
  ReadingProgress progress(checkpoints);
  const auto is_valid = [&](const Checkpoint& checkpoint) {
    try {
      progress.verify(checkpoint);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const auto found = std::find_if(checkpoints.rbegin(), checkpoints.rend(), is_valid);
  return found == checkpoints.rend() ? nullptr : &*found;
}

// Throws ConfigError if removing `gone` would leave no valid checkpoint. REQUIRES: `gone` is a subset of
// `checkpoints`, in the same order.
void require_valid_rest(const std::vector<Checkpoint>& checkpoints, const std::vector<Checkpoint>& gone) {
  std::vector<Checkpoint> rest;
  std::ranges::set_difference(checkpoints, gone, std::back_inserter(rest), {}, &Checkpoint::step,
                              &Checkpoint::step);
  if (newest_valid(rest) != nullptr) return;
  const Checkpoint* last = newest_valid(gone);
  if (last == nullptr) return;
  throw ConfigError(
      "nothing was removed: without step {} there would be no valid checkpoint left in {}; use --all to remove everything",
      last->step, last->path.parent_path().string());
}

void remove_one(const std::filesystem::path& path, const std::string& name) {
  const int64_t bytes = size_on_disk(path);
  remove_folder(path);
  fmt::print("removed {} ({})\n", name, show_size(bytes));
  std::fflush(stdout);
}

void remove_chosen(const CheckpointArguments& arguments) {
  const auto checkpoints = find_checkpoints(arguments.folder);
  const auto gone = arguments.keep_last > 0
                        ? checkpoint_format::superseded(checkpoints, {.last = arguments.keep_last})
                        : of_steps(checkpoints, arguments.steps);
  require_valid_rest(checkpoints, gone);
  for (const Checkpoint& old : gone) remove_one(old.path, fmt::format("step {}", old.step));
  if (gone.empty())
    fmt::print("nothing to remove: found {}\n", counted(std::ssize(checkpoints), "checkpoint"));
}

// Includes partial checkpoints of interrupted saves. Locks the output folder, because an active run would
// lose its current save.
void remove_everything(const std::filesystem::path& folder) {
  const std::filesystem::path checkpoints = checkpoints_in(folder);
  const std::filesystem::path run = std::filesystem::canonical(checkpoints).parent_path();
  std::optional<checkpoint_format::RunLock> lock;
  if (checkpoint_format::RunLock::is_run(run)) {
    lock = checkpoint_format::RunLock::try_take(run);
    if (!lock)
      throw ConfigError("nothing was removed: a run is writing into {}; stop it, or wait until it ends",
                        run.string());
  }
  const auto all = checkpoint_format::list_checkpoints(checkpoints);
  const auto partial = checkpoint_format::list_partial(checkpoints);
  if (all.empty() && partial.empty()) refuse_empty(folder);
  for (const Checkpoint& one : all) remove_one(one.path, fmt::format("step {}", one.step));
  for (const auto& path : partial) remove_one(path, path.filename());
}

void remove(const CheckpointArguments& arguments) {
  const std::filesystem::path& folder = arguments.folder;
  if (!std::filesystem::is_directory(folder)) throw ConfigError("there is no folder {}", folder.string());
  if (const auto single = as_checkpoint(folder)) {
    throw ConfigError("{} is a single checkpoint; pass the folder that contains it, and --step {}",
                      folder.string(), single->step);
  }
  arguments.all ? remove_everything(folder) : remove_chosen(arguments);
}

CLI::App* add_action(CLI::App& verb, const char* name, const char* help, const char* folders,
                     CheckpointArguments& arguments) {
  CLI::App* action = verb.add_subcommand(name, help);
  action->add_option("folder", arguments.folder, folders)->required()->type_name("FOLDER");
  return action;
}

void add_remove(CLI::App& verb, const std::shared_ptr<CheckpointArguments>& arguments, int& exit_code) {
  constexpr int64_t most_steps = int64_t{1} << 53;
  CLI::App* action = add_action(verb, "rm", "Remove checkpoints, except the last valid one",
                                "The output folder of a run, or its checkpoints/", *arguments);
  CLI::Option_group* which = action->add_option_group("Which", "Exactly one of these");
  which->add_option("--step", arguments->steps, "The checkpoint of this step; may be repeated")
      ->type_name("N")
      ->check(arguments::whole_number_from(0, most_steps))
      ->allow_extra_args(false);
  which->add_flag("--all", arguments->all,
                  "All checkpoints, including the last valid one and partial ones of interrupted saves");
  which->add_option("--keep-last", arguments->keep_last, "All except the newest N")
      ->type_name("N")
      ->check(arguments::whole_number_from(1, 1'000'000'000));
  which->require_option(1);
  action->callback([arguments, &exit_code] {
    remove(*arguments);
    exit_code = 0;
  });
}

}  // namespace

void add_checkpoints(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("checkpoints", "List, check and remove the checkpoints of a run");
  verb->require_subcommand(1);
  auto arguments = std::make_shared<CheckpointArguments>();
  const char* folders = "The output folder of a run, its checkpoints/, or one checkpoint";
  add_action(*verb, "ls", "List checkpoints: step, time, ranks, size, score", folders, *arguments)
      ->callback([arguments, &exit_code] { exit_code = list(arguments->folder); });
  add_action(*verb, "verify", "Verify the checksums of checkpoints", folders, *arguments)
      ->callback([arguments, &exit_code] { exit_code = verify_all(arguments->folder); });
  add_remove(*verb, arguments, exit_code);
}

}  // namespace stretto::cli
