#include <map>

#include "tests/messages/mistakes.h"

#include "stretto/base/files.h"
#include "stretto/cluster/environment.h"
#include "stretto/cluster/managers.h"
#include "stretto/cluster/socket.h"
#include "stretto/comm/job.h"
#include "stretto/launch/hosts/host_list.h"
#include "stretto/launch/process/spawn.h"

namespace stretto {
namespace {

using Variables = std::map<std::string, std::string>;

// Returns `variables` with one variable changed.
Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

const Variables& torchrun() {
  static const Variables variables = {
      {"RANK", "3"},       {"WORLD_SIZE", "4"},      {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29400"}};
  return variables;
}

const Variables& slurm() {
  static const Variables variables = {{"SLURM_JOB_ID", "7"},
                                      {"SLURM_STEP_ID", "0"},
                                      {"SLURM_STEP_NUM_TASKS", "5"},
                                      {"SLURM_PROCID", "4"},
                                      {"SLURM_LOCALID", "0"},
                                      {"SLURM_NODEID", "2"},
                                      {"SLURM_STEP_NUM_NODES", "3"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                      {"SLURM_STEP_NODELIST", "node[07-09]"}};
  return variables;
}

cluster::Getenv getenv_of(const Variables& variables) {
  return [=](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace

void add_environments(Mistakes& all) {
  const auto rank = [&](const char* name, const Variables& variables) {
    all.push_back(
        {std::string("environment: ") + name, [=] { cluster::read_rank_info(getenv_of(variables)); }});
  };
  rank("a rank alone", {{"RANK", "0"}});
  rank("a rank that is a word", with(torchrun(), "RANK", "one"));
  rank("a rank below 0", with(torchrun(), "RANK", "-1"));
  rank("a rank that does not fit", with(torchrun(), "RANK", "4"));
  rank("more local ranks than ranks", with(torchrun(), "LOCAL_WORLD_SIZE", "5"));
  rank("a timeout with a unit", with(torchrun(), "STRETTO_COLLECTIVE_TIMEOUT", "10m"));
  rank("a store without a secret", with(torchrun(), "STRETTO_STORE", "127.0.0.1:1"));
  rank("a store without a port", with(torchrun(), "STRETTO_STORE", "here"));
  rank("an unknown check", {{"STRETTO_DEBUG", "colectives"}});
  rank("srun: a rank that does not fit", with(slurm(), "SLURM_PROCID", "5"));
  rank("srun: a node without tasks", with(slurm(), "SLURM_NODEID", "3"));
  rank("srun: no local rank", with(slurm(), "SLURM_LOCALID", ""));
  rank("mpirun: no first host", {{"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  all.push_back({"environment: a pod of a job that may grow", [] {
                   cluster::read_host_task(getenv_of({{"PET_NNODES", "1:4"}}));
                 }});
  const auto secret = [&](const char* name, const std::string& content, std::filesystem::perms mode) {
    all.push_back({std::string("environment: ") + name, [=] {
                     write_file_atomic("secret", content);
                     std::filesystem::permissions("secret", mode);
                     cluster::read_secret(getenv_of({{"STRETTO_SECRET_FILE", "secret"}}));
                   }});
  };
  secret("a secret that others may read", "s3cret\n", std::filesystem::perms(0644));
  secret("a secret that is empty", " \n", std::filesystem::perms(0600));
  all.push_back({"device: fewer GPUs than ranks", [] {
                   const cluster::RankInfo info = {.local_world_size = 2};
                   comm::choose_device("cuda", "training.device", info, 1);
                 }});
  all.push_back({"device: a back end that does not work on GPUs",
                 [] { comm::choose_backend("gloo", "training.backend", at::kCUDA, "training.device"); }});
  all.push_back({"launch: no program", [] { launch::find_program("no-such-program", "/no/such/folder"); }});
  all.push_back({"launch: not a program", [] {
                   write_file_atomic("notes.txt", "text");
                   launch::find_program("./notes.txt", "");
                 }});
  const auto hosts = [&](const char* name, const std::string& text) {
    all.push_back({std::string("--hosts: ") + name, [=] { launch::parse_hosts(text); }});
  };
  hosts("an empty name", "a,,b");
  hosts("an option", "localhost,-oProxyCommand=x");
  hosts("ranks that are a word", "a:many");
  all.push_back({"--hostfile: an unknown word", [] {
                   write_file_atomic("hosts", "localhost slots=1\nb slot=2\n");
                   launch::read_hostfile("hosts");
                 }});
  all.push_back({"--hostfile: no host", [] {
                   write_file_atomic("hosts", "# none\n");
                   launch::read_hostfile("hosts");
                 }});
}

}  // namespace stretto
