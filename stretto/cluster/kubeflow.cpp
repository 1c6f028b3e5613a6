#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/variables.h"

namespace stretto::cluster {
namespace {

constexpr int torchrun_port = 29400;

// Parses "2" or "2:2"; elastic jobs are refused.
int number_of_hosts(const Variables& variables) {
  const std::string text = variables.need("PET_NNODES");
  const size_t colon = text.find(':');
  const int nodes = variables.number("PET_NNODES", text.substr(0, colon), 1, max_world_size);
  if (colon != std::string::npos && text.substr(colon + 1) != text.substr(0, colon))
    throw ConfigError(
        "environment: PET_NNODES=\"{}\": the number of hosts is fixed in this version; set one number", text);
  return nodes;
}

// "auto", "cpu" and "gpu" mean stretto's default.
int number_of_ranks(const Variables& variables) {
  const std::string text = variables.find("PET_NPROC_PER_NODE").value_or("auto");
  if (text == "auto" || text == "cpu" || text == "gpu") return 0;
  return variables.number("PET_NPROC_PER_NODE", text, 1, max_world_size);
}

Endpoint master_of(const Variables& variables) {
  if (const auto address = variables.find("PET_MASTER_ADDR"))
    return {*address, variables.number_or_zero("PET_MASTER_PORT", 65535)};
  const auto rendezvous = variables.find("PET_RDZV_ENDPOINT");
  if (!rendezvous) return {};
  const bool has_port = rendezvous->find(':') != std::string::npos;
  return parse_endpoint(has_port ? *rendezvous : fmt::format("{}:{}", *rendezvous, torchrun_port),
                        "environment: PET_RDZV_ENDPOINT");
}

}  // namespace

std::optional<HostTask> read_kubeflow_task(const Getenv& getenv) {
  constexpr const char* identity[] = {"PET_NNODES"};
  const Variables variables(getenv, identity);
  if (variables.first_set() == nullptr) return std::nullopt;
  HostTask task{.manager = "Kubeflow (PET_NNODES)", .nodes = number_of_hosts(variables)};
  if (const auto rank = variables.find("PET_NODE_RANK"))
    task.node_rank = variables.number("PET_NODE_RANK", *rank, 0, task.nodes - 1);
  task.ranks = number_of_ranks(variables);
  task.master = master_of(variables);
  return task;
}

}  // namespace stretto::cluster
