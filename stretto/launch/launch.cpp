#include "stretto/launch/launch.h"

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/secret.h"
#include "stretto/cluster/store_server.h"
#include "stretto/launch/placement.h"
#include "stretto/launch/rank_environment.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {
namespace {

const cluster::Endpoint this_host{"127.0.0.1", 0};

std::optional<std::string> find(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  return found->second;
}

// Empty: the ranks run where the system puts them. With GPUs too: there the host's threads are many and
// short-lived.
std::vector<std::vector<int>> place(const LaunchOptions& options, const Environment& base,
                                    const JobContext& job) {
  if (!options.pin || job.gpus > 0) return {};
  const std::string asked = find(base, "OMP_NUM_THREADS").value_or("1");
  const auto threads = parse_int(split(asked, ',').front());
  const std::vector<int> available = available_cores();
  std::vector<std::vector<int>> cores;
  if (threads && *threads >= 1 && *threads <= static_cast<long long>(available.size())) {
    cores = assign_cores(available, job.ranks, static_cast<int>(*threads));
  }
  if (cores.empty()) {
    log::info("{} ranks with {} thread(s) each on {} cores: they are not pinned", job.ranks, asked,
              available.size());
  }
  return cores;
}

std::filesystem::path log_file(const LaunchOptions& options, int rank) {
  if (options.log_folder.empty()) return {};
  return std::filesystem::absolute(options.log_folder) / fmt::format("training_{}.log", rank);
}

}  // namespace

int default_ranks() { return std::max(1, count_gpus(find(own_environment(), "CUDA_VISIBLE_DEVICES"))); }

int run(const LaunchOptions& options) {
  if (options.command.empty()) throw ConfigError("launch: no program was given to run");
  const SignalGuard signals;
  Environment base = own_environment();
  for (const auto& [name, value] : options.environment) base[name] = value;
  const auto program =
      find_program(options.command[0], find(base, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  if (!options.log_folder.empty()) make_folders(options.log_folder);

  JobContext job;
  job.gpus = count_gpus(find(base, "CUDA_VISIBLE_DEVICES"));
  job.ranks = options.ranks > 0 ? options.ranks : default_ranks();
  job.secret = cluster::make_secret();
  job.terminal = ::isatty(STDERR_FILENO) == 1;
  const cluster::StoreServer store(cluster::bind_socket(this_host), job.secret);
  const Fd master =
      cluster::bind_socket(this_host);  // kept until the end, so that nobody else takes the port
  job.store = store.endpoint();
  job.master = cluster::bound_endpoint(master);

  const auto cores = place(options, base, job);
  Console console(/*shared=*/job.ranks > 1);
  std::vector<Rank> ranks;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const std::filesystem::path log = log_file(options, rank);
    Process process({.program = program,
                     .command = options.command,
                     .environment = as_list(rank_environment(base, job, rank, log.string())),
                     .cores = cores.empty() ? std::vector<int>{} : cores[static_cast<size_t>(rank)],
                     .keep_stdin = rank == 0 && ::isatty(STDIN_FILENO) == 0},
                    signals);
    RankOutput output(rank, std::move(process.out()), std::move(process.err()), log, console);
    ranks.push_back({rank, std::move(process), std::move(output)});
  }
  const int exit_code = supervise(ranks, signals, options.grace);
  console.finish();
  return exit_code;
}

}  // namespace stretto::launch
