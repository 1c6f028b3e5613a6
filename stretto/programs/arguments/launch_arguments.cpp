#include "stretto/programs/arguments/launch_arguments.h"

#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/managers.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/help_format.h"

namespace stretto::arguments {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace

void add_ranks_option(CLI::App& verb, int& ranks, const std::string& description) {
  verb.add_option("-N,-n,--nproc-per-node,--nproc_per_node", ranks, description)
      ->type_name("N")
      ->check(whole_number_from(1, 4096))
      // For -N=2 CLI11 passes the value "=2". Checks and transforms run last to first.
      ->transform([](const std::string& text) { return text.starts_with('=') ? text.substr(1) : text; });
}

void add_launch_arguments(CLI::App& verb, LaunchArguments& arguments) {
  constexpr int64_t year = 365 * 24 * 3600;
  verb.formatter(std::make_shared<HelpFormat>());
  add_ranks_option(verb, arguments.ranks, "Ranks to start on this host (default: one per GPU, else one)");
  verb.add_flag("--no-pin", arguments.no_pin, "Do not pin ranks to CPU cores");
  verb.add_option("--max-restarts,--max_restarts", arguments.max_restarts,
                  "Maximum number of restarts of all ranks after a failure (default: 0)")
      ->type_name("N")
      ->check(whole_number_from(0, 1'000'000));
  verb.add_option("--hang-timeout", arguments.hang_timeout,
                  "Seconds without progress before the job is aborted (default: 300; 0: never)")
      ->type_name("SECONDS")
      ->check(number_from(0, year));
  verb.add_option("--collective-timeout", arguments.collective_timeout,
                  "Seconds that a collective waits for other ranks before it fails (default: 600; 0: never)")
      ->type_name("SECONDS")
      ->check(whole_number_from(0, year));
  verb.add_option(
          "--grace", arguments.grace,
          "Seconds that ranks have to finish their step and save after Ctrl-C or SIGTERM (default: 60)")
      ->type_name("SECONDS")
      ->check(number_from(0, year));
  verb.add_option("--stop-exit-code", arguments.stop_exit_code,
                  "Exit code after Ctrl-C or SIGTERM if all ranks have saved (default: 0)")
      ->type_name("CODE")
      ->check(whole_number_from(0, 255));
  add_host_arguments(verb, arguments.hosts);
}

void join_job(LaunchArguments& arguments) { arguments.hosts.order = launch::read_join_order(); }

void note_ranks_of_launcher(const LaunchArguments& arguments) {
  const auto info = cluster::read_rank_info();
  if (arguments.ranks == 0 || arguments.ranks == info.local_world_size || info.rank != 0) return;
  log::warning("-N {} has no effect: another launcher (torchrun, srun, mpirun) has started {} on this host",
               arguments.ranks, counted(info.local_world_size, "rank"));
}

void apply(const LaunchArguments& arguments, launch::LaunchOptions& options) {
  options.ranks = arguments.ranks;
  options.hosts = host_options(arguments.hosts);
  for (launch::ListedHost& host : options.hosts.list) {
    if (host.ranks == 0) host.ranks = arguments.ranks;
  }
  if (!options.hosts.list.empty()) options.ranks = options.hosts.list.front().ranks;
  if (arguments.hosts.order) options.ranks = arguments.hosts.order->ranks;
  if (options.ranks == 0) {
    if (const auto task = cluster::read_host_task()) options.ranks = task->ranks;
  }
  options.pin = !arguments.no_pin;
  options.restart.max_restarts = arguments.max_restarts;
  options.hang_timeout = milliseconds(arguments.hang_timeout);
  if (arguments.collective_timeout)
    options.collective_timeout = std::chrono::seconds(*arguments.collective_timeout);
  options.stop.grace = milliseconds(arguments.grace);
  options.stop.exit_code = arguments.stop_exit_code;
}

}  // namespace stretto::arguments
