#include "stretto/lite/ranks.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <unistd.h>

#include <c10/util/Exception.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/process.h"
#include "stretto/base/strings.h"
#include "stretto/launch/launch.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/lite/lite.h"
#include "stretto/strategy/sharding.h"

namespace stretto::lite {
namespace {

// Runs this program once per rank, as `stretto launch` does, and exits with its exit code.
[[noreturn]] void become_launcher(int ranks) {
  int exit_code = 1;
  try {
    exit_code = launch::run({.command = launch::command_line(), .program = "/proc/self/exe", .ranks = ranks});
  } catch (const Error& error) {
    log::error("{}", error.what());
    exit_code = error.exit_code();
  }
  log::flush();
  ::_exit(exit_code);  // without destructors: this process is not a rank
}

void require_as_launched(const LiteOptions& options, const cluster::RankInfo& info) {
  if (options.devices > 0 && info.local_world_size != options.devices) {
    throw ConfigError(
        "Lite: devices = {}, but the launcher started {} on this host; start that many (stretto launch -N {}, torchrun --nproc-per-node {}, srun --ntasks-per-node {}, mpirun -np {}) or omit devices",
        options.devices, counted(info.local_world_size, "rank"), options.devices, options.devices,
        options.devices, options.devices);
  }
  const int nodes = info.world_size / std::max(1, info.local_world_size);
  if (options.num_nodes > 0 && nodes != options.num_nodes) {
    throw ConfigError(
        "Lite: num_nodes = {}, but the launcher started {}, {} on this host; start the program on {} or omit num_nodes",
        options.num_nodes, counted(info.world_size, "rank"), info.local_world_size,
        counted(options.num_nodes, "host"));
  }
}

// Maps Fabric's names to those of join_job().
std::string parse_accelerator(const std::string& name) {
  if (name == "gpu") return "cuda";
  if (name == "auto" || name == "cpu" || name == "cuda") return name;
  throw ConfigError("Lite: accelerator = \"{}\" is not supported; supported: auto, cpu, cuda (gpu)", name);
}

// A rank holds the state of a run: a closed or stalled output must neither end nor block it.
void outlive_output(const cluster::RankInfo& info) {
  fill_standard_descriptors();
  ignore_write_signals();
  log::buffer_stderr(/*to_launcher=*/!info.heartbeat.empty());
}

std::atomic<bool> lite_exists = false;

std::terminate_handler terminate_before = nullptr;

// Handles exceptions only: for other causes of std::terminate a core dump is more useful.
[[noreturn]] void end_with_message() {
  int exit_code = 1;
  if (std::current_exception() == nullptr) {
    if (terminate_before != nullptr) terminate_before();
    std::abort();
  }
  try {
    throw;
  } catch (const DataError& error) {
    log::error("{}", error.what());
    exit_code = launch::usage_error;  // a restart would fail in the same way
  } catch (const Error& error) {
    log::error("{}", error.what());
    exit_code = error.exit_code();
  } catch (const c10::Error& error) {
    log::error("{}", error.what_without_backtrace());
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  } catch (...) {
    log::error("terminated by an exception that is not a std::exception");
  }
  log::flush();
  std::fflush(stdout);
  ::_exit(exit_code);
}

}  // namespace

ProcessHook::ProcessHook() {
  if (lite_exists.exchange(true))
    throw ConfigError(
        "Lite: another Lite exists already: construct one, first in main(), and pass it by reference");
  if (std::get_terminate() != end_with_message) terminate_before = std::set_terminate(end_with_message);
}

ProcessHook::~ProcessHook() { lite_exists = false; }

Settings check(const LiteOptions& options) {
  if (options.devices < 0 || options.devices > 4096)
    throw ConfigError("Lite: devices = {} is out of range; expected 0 .. 4096", options.devices);
  if (options.num_nodes < 0)
    throw ConfigError("Lite: num_nodes = {} must not be negative", options.num_nodes);
  if (!(options.bucket_mb > 0)) throw ConfigError("Lite: bucket_mb = {} must be above 0", options.bucket_mb);
  if (options.tp < 1 || options.tp > 4096)
    throw ConfigError("Lite: tp = {} is out of range; expected 1 .. 4096", options.tp);
  if (options.sequence_parallel && options.tp == 1) {
    throw ConfigError(
        "Lite: sequence_parallel: rows are divided among the ranks of each layer, and tp is 1; set it to 2 or more, or remove this");
  }
  if (options.dp_shard < 0) throw ConfigError("Lite: dp_shard = {} must not be negative", options.dp_shard);
  const bool has_strategy = options.strategy != "auto";
  const auto name = [](const std::string& option) { return fmt::format("Lite: {} = ", option); };
  Settings settings = {parse_compute_options(
      {has_strategy ? options.strategy : ComputeNames().strategy, options.precision, options.products},
      {.label = name, .mention = name, .given = [&](const std::string& option) {
         return option == "strategy" && has_strategy;  // the strategy's precision replaces the option
       }})};
  if (settings.optimizer_in_files || settings.parameters_in_files) {
    throw ConfigError(
        "Lite: strategy = {}: parameters and optimizer state stay in memory; use {} without nvme",
        options.strategy, settings.strategy);
  }
  if (options.dp_shard > 0 && !is_hybrid(find_sharding(settings.strategy))) {
    throw ConfigError("Lite: dp_shard = {} applies to strategy {}; the strategy is {}", options.dp_shard,
                      strategies_with(is_hybrid, "or"), settings.strategy);
  }
  settings.device = parse_accelerator(options.accelerator);
  if (settings.in_host_memory) {
    if (settings.device == "cuda")
      throw ConfigError(
          "Lite: accelerator = \"{}\": the strategy offloads to the memory of the host, where CPU ranks have their state; GPUs do not offload; use cpu",
          options.accelerator);
    settings.device = "cpu";
  }
  if (options.dp_shard > 0) settings.dp_shard = options.dp_shard;
  settings.tp = options.tp;
  settings.sequence_parallel = options.sequence_parallel;
  settings.bucket_bytes = options.bucket_mb * 1024 * 1024;
  return settings;
}

TopologyRequest topology_request(const Settings& settings) {
  // resolve() names the recipe's keys: mesh.tp
  const auto name = [](const std::string& option) { return option.substr(option.rfind('.') + 1); };
  return {
      .strategy = settings.strategy,
      .dp_shard = settings.dp_shard,
      .tp = settings.tp,
      .labels = {.label = [=](const std::string& option) { return fmt::format("Lite: {}: ", name(option)); },
                 .mention = name}};
}

cluster::RankInfo start_or_join(const LiteOptions& options) {
  cluster::RankInfo info = cluster::read_rank_info();
  if (info.launched) {
    require_as_launched(options, info);
    outlive_output(info);
    return info;
  }
  if (options.num_nodes > 1) {
    throw ConfigError(
        "Lite: num_nodes = {}, but this program was started without a launcher and can start ranks on this host only; start it on every host with torchrun, srun or mpirun",
        options.num_nodes);
  }
  const bool uses_gpus = options.accelerator != "cpu";
  const int world_size = options.devices > 0 ? options.devices : uses_gpus ? launch::default_ranks() : 1;
  if (world_size > 1) become_launcher(world_size);
  return info;
}

}  // namespace stretto::lite
