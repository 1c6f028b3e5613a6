#include "stretto/launch/process/rank_environment.h"

#include <string_view>

#include <unistd.h>

namespace stretto::launch {

Environment own_environment() {
  Environment environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Environment rank_environment(Environment base, const JobContext& job, int rank, const std::string& log_file) {
  for (const char* stale : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE", "STRETTO_SECRET_FILE",
                            "STRETTO_LOG_FILE", "STRETTO_TERMINAL", "STRETTO_ENCRYPT"}) {
    base.erase(stale);
  }
  const std::string world = std::to_string(job.world_size), local_world = std::to_string(job.ranks);
  const Environment own = {{"RANK", std::to_string(rank)},
                           {"LOCAL_RANK", std::to_string(rank - job.first_rank)},
                           {"ROLE_RANK", std::to_string(rank)},
                           {"GROUP_RANK", std::to_string(job.node_rank)},
                           {"WORLD_SIZE", world},
                           {"LOCAL_WORLD_SIZE", local_world},
                           {"ROLE_WORLD_SIZE", world},
                           {"GROUP_WORLD_SIZE", std::to_string(job.nodes)},
                           {"ROLE_NAME", "default"},
                           {"MASTER_ADDR", job.master.host},
                           {"MASTER_PORT", std::to_string(job.master.port)},
                           {"TORCHELASTIC_RESTART_COUNT", std::to_string(job.restart_count)},
                           {"TORCHELASTIC_MAX_RESTARTS", std::to_string(job.max_restarts)},
                           {"TORCHELASTIC_RUN_ID", job.run_id},
                           {"STRETTO_STORE", job.store.text()},
                           {"STRETTO_SECRET", job.secret},
                           {"STRETTO_HEARTBEAT", job.heartbeat}};
  for (const auto& [name, value] : own) base[name] = value;
  if (job.gpus == 0 || job.ranks > 1) base.emplace("OMP_NUM_THREADS", "1");
  if (job.encrypt) base["STRETTO_ENCRYPT"] = "1";
  if (!log_file.empty()) base["STRETTO_LOG_FILE"] = log_file;
  if (job.terminal >= 0 && rank == 0) base["STRETTO_TERMINAL"] = std::to_string(job.terminal);
  return base;
}

std::vector<std::string> as_list(const Environment& environment) {
  std::vector<std::string> list;
  for (const auto& [name, value] : environment) list.push_back(name + "=" + value);
  return list;
}

}  // namespace stretto::launch
