#include "stretto/programs/arguments/host_arguments.h"

#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/cluster/managers.h"
#include "stretto/programs/arguments/checks.h"

namespace stretto::arguments {
namespace {

constexpr int most_hosts = 4096;
constexpr int torchrun_port = 29400;  // the default port of --rdzv-endpoint HOST

// Parses the number of hosts. torchrun's MIN:MAX, for an elastic job, is refused unless both are equal.
std::string fixed_number(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return whole_number_from(1, most_hosts)(text);
  if (text.substr(0, colon) == text.substr(colon + 1)) return "";
  return fmt::format("\"{}\": the number of hosts is fixed in this version; pass one number", text);
}

std::string known_backend(const std::string& text) {
  if (text == "c10d" || text == "static") return "";
  return fmt::format("\"{}\": hosts meet in stretto's own store; omit the option, or pass c10d or static",
                     text);
}

cluster::Endpoint rendezvous_endpoint(const std::string& text) {
  const bool has_port = text.ends_with(']') ? false : text.find(':') != std::string::npos;
  return cluster::parse_endpoint(has_port ? text : fmt::format("{}:{}", text, torchrun_port),
                                 "--rdzv-endpoint");
}

}  // namespace

void add_host_arguments(CLI::App& verb, HostArguments& arguments) {
  constexpr int64_t year = 365 * 24 * 3600;
  constexpr const char* group = "SEVERAL HOSTS (the same command on each)";
  verb.add_option("--nodes,--nnodes", arguments.nodes, "Hosts of the job (default: 1)")
      ->type_name("N")
      ->transform([](const std::string& text) {
        const std::string problem = fixed_number(text);
        if (!problem.empty()) throw CLI::ValidationError(problem);
        return text.substr(0, text.find(':'));
      })
      ->group(group);
  verb.add_option(
          "--node-rank,--node_rank", arguments.node_rank,
          "Number of this host, from 0 (default: 0 on the host with the master's address, else any free one)")
      ->type_name("N")
      ->check(whole_number_from(0, most_hosts - 1))
      ->group(group);
  verb.add_option("--master-addr,--master_addr", arguments.master_addr,
                  "Name or address of the host with node rank 0, by which all reach it")
      ->type_name("HOST")
      ->check(a_name)
      ->group(group);
  verb.add_option("--master-port,--master_port", arguments.master_port,
                  "Port there for the job's store (default: 29500)")
      ->type_name("PORT")
      ->check(whole_number_from(1, 65535))
      ->group(group);
  verb.add_option("--rdzv-endpoint,--rdzv_endpoint", arguments.rendezvous,
                  "torchrun's form of --master-addr and --master-port, HOST:PORT")
      ->type_name("HOST:PORT")
      ->check(a_name)
      ->group(group);
  verb.add_option("--interface", arguments.interface,
                  "Network interface, or network, of this host's sockets (default: that towards the master)")
      ->type_name("NAME|CIDR")
      ->check(a_name)
      ->group(group);
  verb.add_option("--secret-file", arguments.secret_file,
                  "File with the job's secret, not readable by others (default: STRETTO_SECRET_FILE)")
      ->type_name("FILE")
      ->check(a_name)
      ->group(group);
  verb.add_flag("--encrypt", arguments.encrypt,
                "Encrypt the traffic between hosts (TLS 1.3, with a key derived from the secret)")
      ->group(group);
  verb.add_option("--join-timeout", arguments.join_timeout, "Seconds for all hosts to join (default: 300)")
      ->type_name("SECONDS")
      ->check(number_from(1, year))
      ->group(group);
  verb.add_option("--host-timeout", arguments.host_timeout,
                  "Seconds without a heartbeat after which a host is lost (default: 3)")
      ->type_name("SECONDS")
      ->check(number_from(1, year))
      ->group(group);
  constexpr const char* by_ssh = "SEVERAL HOSTS (started from the first one)";
  verb.add_option("--hosts", arguments.hosts,
                  "Hosts of the job, this one first; the others are started by ssh. RANKS: default -N")
      ->type_name("HOST[:RANKS],...")
      ->check(a_name)
      ->group(by_ssh);
  verb.add_option("--hostfile", arguments.hostfile, "File with a host per line: \"HOST slots=RANKS\"")
      ->type_name("FILE")
      ->check(a_name)
      ->group(by_ssh);
  verb.add_option("--rsh", arguments.rsh,
                  "Command that runs a command on a host, in place of ssh, such as \"ssh -p 2222\"")
      ->type_name("CMD")
      ->check(a_name)
      ->group(by_ssh);
  // Options of torchrun without an effect.
  verb.add_option("--rdzv-id,--rdzv_id", arguments.run_id, "Sets TORCHELASTIC_RUN_ID")
      ->type_name("ID")
      ->check(a_name)
      ->group("");
  verb.add_option_function<std::string>(
          "--rdzv-backend,--rdzv_backend", [](const std::string&) {}, "c10d or static")
      ->check(known_backend)
      ->group("");
}

static std::vector<launch::ListedHost> given_list(const HostArguments& arguments) {
  if (!arguments.hosts.empty() && !arguments.hostfile.empty())
    throw ConfigError("--hosts and --hostfile are both given; remove one of them");
  if (!arguments.hosts.empty()) return launch::parse_hosts(arguments.hosts);
  if (arguments.hostfile.empty()) return {};
  try {
    return launch::read_hostfile(arguments.hostfile);
  } catch (const IoError& error) {
    throw ConfigError("--hostfile: {}", error.what());
  }
}

static std::vector<launch::ListedHost> listed_hosts(const HostArguments& arguments) {
  std::vector<launch::ListedHost> list = given_list(arguments);
  if (arguments.rsh.empty() || list.size() > 1) return list;
  if (list.empty())
    throw ConfigError("--rsh \"{}\": no host is to be started; list them with --hosts or --hostfile",
                      arguments.rsh);
  throw ConfigError(
      "--rsh \"{}\": {} is the only host of the list, so none is to be started; list others too (a host that is listed several times has as many ranks), or remove --rsh",
      arguments.rsh, list[0].name);
}

// Fills in options from the variables of a cluster's manager that started one launcher per host; the user's
// options take precedence.
static void apply_task(const cluster::HostTask& task, launch::HostOptions& options) {
  if (options.nodes != 1 && options.nodes != task.nodes)
    throw ConfigError("--nodes {}: {} has started launchers on {} hosts; remove --nodes", options.nodes,
                      task.manager, task.nodes);
  options.nodes = task.nodes;
  const auto is_set = [](const char* name) {
    return !cluster::process_environment(name).value_or("").empty();
  };
  if (!options.node_rank) options.node_rank = task.node_rank;
  if (options.master.host.empty() && !is_set("MASTER_ADDR")) options.master.host = task.master.host;
  if (options.master.port == 0 && !is_set("MASTER_PORT")) options.master.port = task.master.port;
}

launch::HostOptions host_options(const HostArguments& arguments) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  launch::HostOptions options{.nodes = std::max(1, arguments.nodes),
                              .node_rank = arguments.node_rank,
                              .encrypt = arguments.encrypt,
                              .run_id = arguments.run_id,
                              .join_timeout = milliseconds(arguments.join_timeout),
                              .host_timeout = milliseconds(arguments.host_timeout)};
  if (!arguments.interface.empty()) ::setenv("STRETTO_INTERFACE", arguments.interface.c_str(), 1);
  if (const auto interface = cluster::process_environment("STRETTO_INTERFACE");
      interface && !interface->empty())
    cluster::address_on(*interface,
                        arguments.interface.empty() ? "environment: STRETTO_INTERFACE" : "--interface");
  if (arguments.order) {
    options.nodes = arguments.order->nodes;
    options.node_rank = arguments.order->node_rank;
    options.master = arguments.order->master;
    options.secret = arguments.order->secret;
    options.encrypt |= cluster::wants_encryption();
    options.joined = true;
    return options;
  }
  options.list = listed_hosts(arguments);
  options.rsh = arguments.rsh;
  options.master = {arguments.master_addr, arguments.master_port};
  if (!arguments.rendezvous.empty()) {
    const cluster::Endpoint rendezvous = rendezvous_endpoint(arguments.rendezvous);
    const bool differs = (!arguments.master_addr.empty() && arguments.master_addr != rendezvous.host) ||
                         (arguments.master_port != 0 && arguments.master_port != rendezvous.port);
    if (differs) {
      throw ConfigError("--rdzv-endpoint {} contradicts --master-addr or --master-port; remove one",
                        arguments.rendezvous);
    }
    options.master = rendezvous;
  }
  const auto task = options.list.empty() ? cluster::read_host_task() : std::nullopt;
  if (task && task->nodes > 1) apply_task(*task, options);
  if (!arguments.secret_file.empty())
    options.secret = cluster::read_secret_file(arguments.secret_file, "--secret-file");
  complete_from_environment(options);
  return options;
}

}  // namespace stretto::arguments
