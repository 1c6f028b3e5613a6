#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "stretto/cluster/endpoint.h"

namespace stretto::cluster {

// The rank of this process in its job, and how it finds the others.
struct RankInfo {
  int rank = 0;              // 0 .. world_size - 1
  int world_size = 1;        // number of ranks of the job
  int local_rank = 0;        // 0 .. local_world_size - 1, on this host
  int local_world_size = 1;  // number of ranks on this host
  int group_rank = 0;        // index of this host
  int restart_count = 0;     // how often the launcher has restarted the job
  bool launched = false;     // false: no launcher, a single rank

  // The rendezvous address unless `store` is set (see rendezvous.h). Empty for a single rank.
  std::string master_addr = {};
  int master_port = 0;
  bool agent_store = false;  // torchrun's agent runs a TCPStore at that address

  std::optional<Endpoint> store = {};  // the store of stretto's launcher
  std::string secret = {};             // of the job's store; empty: none is set
  bool encrypt = false;                // STRETTO_ENCRYPT: connections between processes are encrypted

  std::string heartbeat = {};                    // the launcher's FlightBoard; empty without one
  std::chrono::seconds collective_timeout{600};  // STRETTO_COLLECTIVE_TIMEOUT

  bool compare_calls = false;  // STRETTO_DEBUG=collectives: check that all ranks make the same calls
};

// Reads one variable; nullopt if it is not set. An empty value counts as not set.
using Getenv = std::function<std::optional<std::string>(const char* name)>;

// Reads the environment of this process.
std::optional<std::string> process_environment(const char* name);

// The job's secret: STRETTO_SECRET, or the content of the file STRETTO_SECRET_FILE; "" if neither is set.
// Throws ConfigError if the file is empty or other users may access it.
std::string read_secret(const Getenv& getenv = process_environment);
// The content of a secret file. `what` names the setting in messages. Throws like read_secret.
std::string read_secret_file(const std::string& path, const char* what);

// Whether STRETTO_ENCRYPT asks for encrypted connections between processes: 1, or 0 as if it were not set.
// Throws ConfigError for other values.
bool wants_encryption(const Getenv& getenv = process_environment);

// A process with this variable evaluates snapshots of the run that has started it (evaluate.async), beside
// its ranks: the value is the descriptor of a socket. LOCAL_RANK is then the GPU that it uses.
inline constexpr const char* evaluation_variable = "STRETTO_EVALUATION";
std::optional<int> evaluation_socket(const Getenv& getenv = process_environment);

// Reads the variables that torchrun and `stretto launch` set for their ranks: RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, GROUP_RANK, TORCHELASTIC_RESTART_COUNT,
// TORCHELASTIC_USE_AGENT_STORE; and of stretto's own STRETTO_STORE (host:port), STRETTO_SECRET or
// STRETTO_SECRET_FILE, STRETTO_HEARTBEAT, STRETTO_ENCRYPT (with STRETTO_STORE only),
// STRETTO_COLLECTIVE_TIMEOUT (seconds; 0: a year) and STRETTO_DEBUG. If none of them is set, reads the
// variables that srun (SLURM_STEP_NUM_TASKS, SLURM_PROCID, ...) or the mpirun of Open MPI
// (OMPI_COMM_WORLD_SIZE, ...) or MPICH (MPI_LOCALNRANKS, ...) sets for several tasks. A process that
// evaluates is a single rank whatever is set. Otherwise the process is a single rank (MASTER_ADDR and
// MASTER_PORT alone are ignored: some clusters set them everywhere). Throws ConfigError, naming the variable,
// if they are incomplete or contradict each other.
RankInfo read_rank_info(const Getenv& getenv = process_environment);

}  // namespace stretto::cluster
