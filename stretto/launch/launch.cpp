#include "stretto/launch/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/new_folder.h"
#include "stretto/base/process.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/secret.h"
#include "stretto/cluster/store_server.h"
#include "stretto/launch/hosts/await_hosts.h"
#include "stretto/launch/hosts/meeting.h"
#include "stretto/launch/hosts/remote_launchers.h"
#include "stretto/launch/hosts/stdin_watch.h"
#include "stretto/launch/process/placement.h"
#include "stretto/launch/process/rank_environment.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {
namespace {

const cluster::Endpoint this_host{"127.0.0.1", 0};

std::optional<std::string> find(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  return found->second;
}

// The properties of a job that stay constant over restarts.
struct Plan {
  const LaunchOptions& options;
  Environment base;
  std::filesystem::path program;
  int ranks;
  int gpus;
  bool has_earlier_logs;                     // logs of one of stretto's programs exist in the log folder
  std::vector<std::vector<int>> cores = {};  // of each rank; empty: not pinned

  bool has_new_logs() const {
    return options.own_program && !options.log_folder.empty() && !has_earlier_logs;
  }
};

// The cores of each rank; empty: not pinned. Ranks with GPUs are not pinned, since their host threads are
// many and short-lived.
std::vector<std::vector<int>> place(const Plan& plan) {
  if (!plan.options.pin || plan.gpus > 0) return {};
  const std::string asked = find(plan.base, "OMP_NUM_THREADS").value_or("1");
  const auto threads = parse_int(split(asked, ',').front());
  const std::vector<int> available = available_cores();
  std::vector<std::vector<int>> cores;
  if (threads && *threads >= 1 && *threads <= static_cast<long long>(available.size())) {
    cores = assign_cores(available, plan.ranks, static_cast<int>(*threads));
  }
  if (cores.empty()) {
    log::info("{} rank{} with OMP_NUM_THREADS={} on {} core{}: not pinned to cores", plan.ranks,
              plan.ranks == 1 ? "" : "s", asked, available.size(), available.size() == 1 ? "" : "s");
  }
  return cores;
}

std::filesystem::path log_file(const LaunchOptions& options, int rank) {
  if (options.log_folder.empty()) return {};
  return std::filesystem::absolute(options.log_folder) / fmt::format("training_{}.log", rank);
}

bool holds_files(const std::filesystem::path& folder) {
  std::error_code none;
  return std::filesystem::exists(folder, none) && !std::filesystem::is_empty(folder, none);
}

// Removes the logs of a run that was refused, unless there were earlier ones. The last host also removes a
// shared folder.
void remove_logs(const LaunchOptions& options, int first_rank, int ranks) {
  std::error_code ignored;
  for (int rank = first_rank; rank < first_rank + ranks; ++rank)
    std::filesystem::remove(log_file(options, rank), ignored);
  ::rmdir(options.log_folder.c_str());
}

void set_collective_timeout(const LaunchOptions& options, Environment& environment) {
  constexpr const char* variable = "STRETTO_COLLECTIVE_TIMEOUT";
  constexpr std::chrono::seconds usual{600};  // the default of ranks (cluster/environment.h)
  const auto longer = std::chrono::ceil<std::chrono::seconds>(2 * options.hang_timeout);
  if (options.collective_timeout) {
    environment[variable] = std::to_string(options.collective_timeout->count());
  } else if (longer > usual) {
    environment.emplace(variable, std::to_string(longer.count()));
  }
}

Plan make_plan(const LaunchOptions& options) {
  Environment base = own_environment();
  for (const auto& [name, value] : options.environment) base[name] = value;
  set_collective_timeout(options, base);
  const auto path = find(base, "PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  const int gpus = count_gpus(find(base, "CUDA_VISIBLE_DEVICES"));
  Plan plan{
      .options = options,
      .base = std::move(base),
      .program = find_program(options.program.empty() ? options.command[0] : options.program.string(), path),
      .ranks = options.ranks > 0 ? options.ranks : default_ranks(),
      .gpus = gpus,
      .has_earlier_logs = options.own_program && holds_files(options.log_folder)};
  plan.cores = place(plan);
  return plan;
}

Rank start_rank(const Plan& plan, const JobContext& job, int local_rank, bool hold_log,
                const SignalGuard& signals, Console& console) {
  const int rank = job.first_rank + local_rank;
  const std::filesystem::path log = log_file(plan.options, rank);
  Process process(
      {.program = plan.program,
       .command = plan.options.command,
       .environment = as_list(rank_environment(plan.base, job, rank, log.string())),
       .cores = plan.cores.empty() ? std::vector<int>{} : plan.cores[static_cast<size_t>(local_rank)],
       .keep_stdin = rank == 0 && ::isatty(STDIN_FILENO) == 0,
       .hold_save = plan.options.own_program,
       .inherited = rank == 0 ? job.terminal : -1},
      signals);
  RankOutput output(rank, process.pid(), std::move(process.out()), std::move(process.err()), log, hold_log,
                    console);
  return {rank, local_rank, std::move(process), std::move(output)};
}

// Writes the record. Errors are only logged: they must not replace the failure itself, which has been
// reported.
void save(const FlightRecord& record, const std::filesystem::path& path) {
  if (path.empty()) return;
  try {
    write_file_atomic(path, to_json(record));
    log::info("last collectives of each rank: stretto inspect {}", path.string());
  } catch (const IoError& error) {
    log::warning("the flight record was not written: {}", error.what());
  }
}

// The rendezvous of the ranks during one run of the group.
struct Place {
  std::optional<cluster::StoreServer> server = {};
  Fd master_port = Fd();  // reserves the port until the end
  JobContext job = {};
};

// On one host, store, secret and ports are new in each run, so that ranks never connect to those of an
// earlier run. On several hosts, all runs share a store, in which each run has its own keys.
void set_place(const Plan& plan, const HostLink* link, Place& place) {
  JobContext& job = place.job;
  job.ranks = plan.ranks;
  if (link == nullptr) {
    job.secret = cluster::make_secret();
    place.server.emplace(cluster::bind_socket(this_host), job.secret);
    place.master_port = cluster::bind_socket(this_host);
    job.store = place.server->endpoint();
    job.master = cluster::bound_endpoint(place.master_port);
    job.world_size = plan.ranks;
    return;
  }
  const HostPlan& hosts = link->plan();
  job.first_rank = hosts.first_rank(hosts.node_rank);
  job.world_size = hosts.world_size();
  job.node_rank = hosts.node_rank;
  job.nodes = static_cast<int>(hosts.hosts.size());
  job.run_id = plan.options.hosts.run_id;
  job.secret = link->secret();
  job.encrypt = plan.options.hosts.encrypt;
  job.store = hosts.store;
  job.master = hosts.master;
}

// One run of the group. `hold_logs`: see SuperviseOptions::logs_held.
Outcome run_group(const Plan& plan, HostLink* link, int restart_count, bool hold_logs,
                  const SignalGuard& signals, Console& console) {
  if (link != nullptr) {
    link->begin(restart_count);
    if (auto ended = await_hosts(*link, signals)) return *ended;
  }
  Place place;
  set_place(plan, link, place);
  const cluster::FlightBoard board(plan.ranks);
  const Fd terminal(::isatty(STDERR_FILENO) == 1 ? ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1);
  JobContext& job = place.job;
  job.gpus = plan.gpus;
  job.heartbeat = board.path();
  job.restart_count = restart_count;
  job.max_restarts = plan.options.restart.max_restarts;
  job.terminal = terminal.get();
  std::vector<Rank> ranks;
  for (int rank = 0; rank < plan.ranks && !signals.end_pending(); ++rank)
    ranks.push_back(start_rank(plan, job, rank, hold_logs, signals, console));
  Outcome outcome = supervise(ranks, signals, board, console,
                              {.stop = plan.options.stop,
                               .hang_timeout = plan.options.hang_timeout,
                               .own_program = plan.options.own_program,
                               .logs_held = hold_logs,
                               .logs_are_new = plan.has_new_logs() && restart_count == 0,
                               .restart_count = restart_count,
                               .max_restarts = plan.options.restart.max_restarts},
                              link);
  const bool interrupted = std::ssize(ranks) < plan.ranks;
  if (interrupted && outcome.exit_code == 0) outcome.exit_code = 128 + outcome.user_signal.value_or(SIGTERM);
  // A rank that exits before its first step has reported the reason, and the folder still belongs to an
  // earlier run.
  const bool is_explained =
      outcome.exit_code == usage_error || (outcome.logs_held && outcome.exit_code < hang_exit_code);
  if (outcome.record && !is_explained && job.node_rank == 0)
    save(*outcome.record, plan.options.flight_record);
  if (outcome.refused && plan.has_new_logs() && restart_count == 0)
    remove_logs(plan.options, job.first_rank, plan.ranks);
  return outcome;
}

// The exit code of the last run of the group.
int run_with_restarts(const Plan& plan, HostLink* link, const SignalGuard& signals, Console& console) {
  const RestartOptions& restart = plan.options.restart;
  bool hold_logs = plan.has_earlier_logs;
  for (int count = 0;; ++count) {
    const Outcome outcome = run_group(plan, link, count, hold_logs, signals, console);
    hold_logs = outcome.logs_held;
    if (outcome.exit_code == 0 && outcome.user_signal) return plan.options.stop.exit_code;
    if (!is_restartable(outcome) || restart.max_restarts == 0) return outcome.exit_code;
    if (count == restart.max_restarts) {
      log::error("giving up after {} restart{}", count, count == 1 ? "" : "s");
      return outcome.exit_code;
    }
    const auto delay = restart_delay(restart, count + 1);
    log::warning("restart {} of {} in {}, because {}", count + 1, restart.max_restarts, seconds_text(delay),
                 outcome.failure);
    if (const auto signal = wait_for_restart(delay, signals, link)) {
      if (link != nullptr) end_before_start(*link, count + 1, *signal);
      return 128 + *signal;
    }
  }
}

// Connects to the launchers of the job's other hosts; null if there are none. `remote`: the launchers that
// this one starts.
std::unique_ptr<HostLink> meet_other_hosts(const Plan& plan, const SignalGuard& signals, Console& console,
                                           std::unique_ptr<RemoteLaunchers>& remote) {
  HostOptions hosts = plan.options.hosts;
  if (hosts.nodes == 1) return nullptr;
  hosts.inputs.push_back({"version of stretto", STRETTO_VERSION});
  hosts.inputs.push_back({"--max-restarts", std::to_string(plan.options.restart.max_restarts)});
  if (plan.options.own_program) {
    const auto program = std::filesystem::canonical(plan.program);
    hosts.inputs.push_back({"program", "build " + hash128_hex(read_file(program)).substr(0, 12), program});
  }
  const auto start_others = [&](const cluster::Endpoint& store, const std::string& secret) {
    if (!hosts.list.empty())
      remote = std::make_unique<RemoteLaunchers>(hosts, store, secret, signals, console);
  };
  const auto interrupted = [&] {
    if (remote) remote->check();
    return signals.end_pending();
  };
  HostMeeting meeting = meet_hosts(hosts, plan.ranks, interrupted, start_others);
  if (remote) remote->begin_job();
  if (hosts.joined) log::set_output([](std::string_view) {});  // the first launcher does the logging
  auto link = std::make_unique<HostLink>(std::move(meeting), hosts.host_timeout);
  const HostPlan& agreed = link->plan();
  std::vector<std::string> all;
  for (int node = 0; node < hosts.nodes; ++node) all.push_back(agreed.describe(node));
  log::info("hosts      {}", fmt::join(all, ", "));
  return link;
}

}  // namespace

int default_ranks() { return std::max(1, count_gpus(find(own_environment(), "CUDA_VISIBLE_DEVICES"))); }

int run(const LaunchOptions& options) {
  if (options.command.empty()) throw ConfigError("launch: there is no program to run");
  fill_standard_descriptors();
  const SignalGuard signals;
  const Plan plan = make_plan(options);
  Console console(
      {.shared = plan.ranks > 1, .log_files = !options.log_folder.empty(), .limits = options.output});
  std::optional<StdinWatch> watch;
  if (options.hosts.joined) watch.emplace();
  std::unique_ptr<RemoteLaunchers> remote;
  auto link = meet_other_hosts(plan, signals, console, remote);
  std::optional<NewFolder> log_folder;  // created late, since this host may be refused
  if (!options.log_folder.empty()) log_folder.emplace(options.log_folder);
  const int exit_code = run_with_restarts(plan, link.get(), signals, console);
  link.reset();
  remote.reset();
  console.finish(signals);
  return exit_code;
}

}  // namespace stretto::launch
