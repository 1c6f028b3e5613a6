#include "stretto/lite/ranks.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include <unistd.h>

#include <c10/util/Exception.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/process.h"
#include "stretto/launch/launch.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/strategy/strategy.h"

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
        "Lite: devices = {}, but the launcher started {} rank{} on this host; start that many (stretto launch -N {}, torchrun --nproc-per-node {}, srun --ntasks-per-node {}, mpirun -np {}) or omit devices",
        options.devices, info.local_world_size, info.local_world_size == 1 ? "" : "s", options.devices,
        options.devices, options.devices, options.devices);
  }
  const int nodes = info.world_size / std::max(1, info.local_world_size);
  if (options.num_nodes > 0 && nodes != options.num_nodes) {
    throw ConfigError(
        "Lite: num_nodes = {}, but the launcher started {} ranks, {} on this host; start the program on {} hosts or omit num_nodes",
        options.num_nodes, info.world_size, info.local_world_size, options.num_nodes);
  }
}

std::string canonical(const std::string& option, const std::string& value,
                      const std::map<std::string, std::string>& names, const std::string& possible) {
  const auto found = names.find(value);
  if (found != names.end()) return found->second;
  throw ConfigError("Lite: {} = \"{}\" is not supported; supported: {}", option, value, possible);
}

// A rank holds the state of a run: output that nobody takes must neither end nor stop it.
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
    exit_code = launch::usage_error;  // a restart would read the same
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
  std::string precision = options.precision;
  Strategy strategy;
  if (options.strategy != "auto") {
    try {
      strategy = parse_strategy(options.strategy);
    } catch (const ConfigError& error) {
      throw ConfigError("Lite: strategy = {}", error.what());
    }
  }
  if (const auto launched = launched_strategy()) {
    if (options.strategy != "auto" && !strategy.agrees_with(*launched)) {
      throw ConfigError(
          "Lite: strategy = \"{}\" contradicts the launcher's --strategy {} (STRETTO_STRATEGY); remove one",
          options.strategy, launched->name());
    }
    strategy.kind = launched->kind;
    if (launched->precision) strategy.precision = launched->precision;
  }
  if (strategy.precision) precision = *strategy.precision;
  if (precision == "16-mixed" || precision == "fp16" || precision == "16-true") {
    throw ConfigError(
        "Lite: precision = \"{}\" requires loss scaling, which this version does not support; use bf16",
        precision);
  }
  Settings settings;
  settings.strategy = strategy.kind;
  settings.dp_shard = options.dp_shard;
  if (options.dp_shard < 0) throw ConfigError("Lite: dp_shard = {} must not be negative", options.dp_shard);
  if (options.dp_shard > 0 && !find_sharding(strategy.kind).hybrid) {
    throw ConfigError("Lite: dp_shard = {} applies to strategy {}; the strategy is {}", options.dp_shard,
                      strategies_with(is_hybrid, "or"), strategy.kind);
  }
  settings.device = canonical("accelerator", options.accelerator,
                              {{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}, {"gpu", "cuda"}},
                              "auto, cpu, cuda (gpu)");
  settings.precision = parse_precision(canonical("precision", precision,
                                                 {{"fp32", "fp32"},
                                                  {"32-true", "fp32"},
                                                  {"32", "fp32"},
                                                  {"bf16", "bf16"},
                                                  {"bf16-mixed", "bf16"},
                                                  {"fp64", "fp64"},
                                                  {"64-true", "fp64"},
                                                  {"64", "fp64"}},
                                                 "fp32 (32-true), bf16 (bf16-mixed), fp64 (64-true)"));
  settings.bucket_bytes = options.bucket_mb * 1024 * 1024;
  settings.products = canonical(
      "products", options.products,
      {{"auto", "auto"}, {"aten", "aten"}, {"onednn", "onednn"}, {"mkl", "mkl"}, {"stretto", "stretto"}},
      "auto, aten, onednn, mkl, stretto");
  return settings;
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
