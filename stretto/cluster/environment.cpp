#include "stretto/cluster/environment.h"

#include <cstdlib>
#include <limits>

#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/variables.h"

namespace stretto::cluster {
namespace {

constexpr const char* torchrun_identity[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                             "STRETTO_STORE"};

bool read_debug(const Variables& variables) {
  const auto debug = variables.find("STRETTO_DEBUG");
  if (debug && *debug != "collectives") {
    throw ConfigError("environment: STRETTO_DEBUG=\"{}\" is unknown; possible: collectives", *debug);
  }
  return debug.has_value();
}

std::chrono::seconds read_collective_timeout(const Variables& variables) {
  constexpr int year = 365 * 24 * 3600, standard = 600;
  const auto text = variables.find("STRETTO_COLLECTIVE_TIMEOUT");
  if (!text) return std::chrono::seconds(standard);
  const int seconds = variables.number("STRETTO_COLLECTIVE_TIMEOUT", *text, 0, year);
  return std::chrono::seconds(seconds == 0 ? year : seconds);
}

// Other launchers' ranks meet in a store that rank 0 or torchrun hosts.
void refuse_encryption(const Getenv& getenv) {
  if (!wants_encryption(getenv)) return;
  throw ConfigError(
      "environment: STRETTO_ENCRYPT is set, but only jobs that `stretto launch` or `stretto train` starts on its hosts are encrypted; start the job by one of them, or unset it");
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

bool wants_encryption(const Getenv& getenv) {
  const std::string value = Variables(getenv, {}).find("STRETTO_ENCRYPT").value_or("0");
  if (value == "0" || value == "1") return value == "1";
  throw ConfigError("environment: STRETTO_ENCRYPT=\"{}\"; expected 1, or 0 for connections in plain", value);
}

std::string read_secret_file(const std::string& path, const char* what) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISDIR(status.st_mode) && (status.st_mode & S_IRWXO) != 0) {
    throw ConfigError("{}: other users may read or write the file {} (mode {:o}); protect it: chmod 600 {}",
                      what, path, status.st_mode & 07777, path);
  }
  std::string content;
  try {
    content = read_file(path);
  } catch (const IoError& error) {
    throw ConfigError("{}: {}", what, error.what());
  }
  const std::string secret(trim(content));
  if (secret.empty()) throw ConfigError("{}: the file {} is empty", what, path);
  return secret;
}

std::string read_secret(const Getenv& getenv) {
  const Variables variables(getenv, {});
  if (const auto secret = variables.find("STRETTO_SECRET")) return *secret;
  const auto path = variables.find("STRETTO_SECRET_FILE");
  return path ? read_secret_file(*path, "environment: STRETTO_SECRET_FILE") : "";
}

std::optional<HostTask> read_host_task(const Getenv& getenv) {
  // PyTorchJob also sets RANK and WORLD_SIZE, which count pods.
  constexpr const char* of_ranks[] = {"LOCAL_RANK", "STRETTO_STORE"};
  if (Variables(getenv, of_ranks).first_set() != nullptr) return std::nullopt;
  if (auto task = read_kubeflow_task(getenv)) return task;
  if (Variables(getenv, torchrun_identity).first_set() != nullptr) return std::nullopt;
  return read_slurm_task(getenv);
}

std::optional<int> evaluation_socket(const Getenv& getenv) {
  const Variables variables(getenv, {});
  const auto text = variables.find(evaluation_variable);
  if (!text) return std::nullopt;
  return variables.number(evaluation_variable, *text, 0, std::numeric_limits<int>::max());
}

bool is_rank(const Getenv& getenv) {
  if (evaluation_socket(getenv)) return true;
  return !read_host_task(getenv) && read_rank_info(getenv).launched;
}

RankInfo read_rank_info(const Getenv& getenv) {
  const Variables variables(getenv, torchrun_identity);
  RankInfo info;
  const bool compare_calls = read_debug(variables);
  const auto collective_timeout = read_collective_timeout(variables);
  if (evaluation_socket(getenv)) {
    info.local_rank = variables.number_or_zero("LOCAL_RANK", max_world_size);
    info.local_world_size = info.local_rank + 1;
    return info;
  }
  if (variables.first_set() == nullptr) {
    const auto slurm = read_slurm(getenv);
    const auto mpirun = slurm ? std::nullopt : read_mpirun(getenv);
    info = slurm ? *slurm : mpirun.value_or(info);
    info.compare_calls = compare_calls;
    info.collective_timeout = collective_timeout;
    if (!info.launched) return info;
    refuse_encryption(getenv);
    info.secret = read_secret(getenv);
    return info;
  }
  info.compare_calls = compare_calls;
  info.collective_timeout = collective_timeout;

  info.launched = true;
  info.world_size = variables.need_number("WORLD_SIZE", 1, max_world_size);
  info.rank = variables.need_number("RANK", 0, max_world_size);
  info.local_world_size = variables.need_number("LOCAL_WORLD_SIZE", 1, max_world_size);
  info.local_rank = variables.need_number("LOCAL_RANK", 0, max_world_size);
  variables.check_below("RANK", info.rank, "WORLD_SIZE", info.world_size);
  variables.check_below("LOCAL_RANK", info.local_rank, "LOCAL_WORLD_SIZE", info.local_world_size);
  if (info.local_world_size > info.world_size) {
    throw ConfigError("environment: LOCAL_WORLD_SIZE={} is larger than WORLD_SIZE={}", info.local_world_size,
                      info.world_size);
  }
  info.master_addr = variables.need("MASTER_ADDR");
  info.master_port = variables.need_number("MASTER_PORT", 1, 65535);
  info.group_rank = variables.number_or_zero("GROUP_RANK", max_world_size);
  info.restart_count = variables.number_or_zero("TORCHELASTIC_RESTART_COUNT", max_world_size);
  info.agent_store = variables.find("TORCHELASTIC_USE_AGENT_STORE") == "True";
  info.secret = read_secret(getenv);
  if (const auto store = variables.find("STRETTO_STORE")) {
    info.store = parse_endpoint(*store, "environment: STRETTO_STORE");
    if (info.secret.empty()) {
      throw ConfigError(
          "environment: STRETTO_STORE is set but neither STRETTO_SECRET nor STRETTO_SECRET_FILE is; the store refuses connections without the job's secret");
    }
    info.heartbeat = variables.find("STRETTO_HEARTBEAT").value_or("");
    info.encrypt = wants_encryption(getenv);
  } else {
    refuse_encryption(getenv);
  }
  return info;
}

}  // namespace stretto::cluster
