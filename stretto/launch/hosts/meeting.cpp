#include "stretto/launch/hosts/meeting.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/cluster/tls.h"
#include "stretto/launch/hosts/card.h"

namespace stretto::launch {
namespace {

using cluster::Clock;
using nlohmann::json;

constexpr auto look_again = std::chrono::milliseconds(500);
constexpr auto progress_pause = std::chrono::seconds(10);

std::string key_of(const char* what, int node) { return fmt::format("hosts.{}.{}", what, node); }

class Meeting {
 public:
  Meeting(const HostOptions& options, int ranks, const std::function<bool()>& interrupted,
          const OnListening& listening)
      : options_(options),
        interrupted_(interrupted),
        listening_(listening),
        deadline_(Clock::now() + options.join_timeout) {
    own_card_ = {.host = host_name(), .process = ::getpid(), .nodes = options.nodes, .ranks = ranks};
    for (const Input& input : options.inputs)
      own_card_.inputs.push_back({input.name, input.value, input.place});
    meeting_.secret = options.secret.empty() ? "no secret" : options.secret;
  }

  HostMeeting run() {
    if (options_.node_rank == 0 || (!options_.node_rank && is_master_host())) host_store();
    connect();
    if (meeting_.server && listening_) listening_(meeting_.server->endpoint(), meeting_.secret);
    take_node_rank();
    json verdict;
    if (meeting_.plan.node_rank == 0) {
      verdict = judge();
      meeting_.client->set("hosts.verdict", verdict.dump());
      if (verdict.contains("error")) {  // the others must be able to read it
        meeting_.client.reset();
        meeting_.server->wait_until_unused(options_.host_timeout);
      }
    } else {
      verdict = await_verdict();
    }
    follow(verdict);
    return std::move(meeting_);
  }

 private:
  std::string master_text() const {
    return meeting_.server ? meeting_.server->endpoint().text() : options_.master.text();
  }

  // Whether a socket can be bound to its address.
  bool is_master_host() const {
    try {
      cluster::bind_socket({options_.master.host, 0});
      return true;
    } catch (const IoError&) {
      return false;
    }
  }

  // A Kubernetes pod may start before its name can be resolved.
  std::string listening_address() const {
    const bool is_pod = cluster::process_environment("KUBERNETES_SERVICE_HOST").has_value();
    const auto patience = Clock::now() + (is_pod ? std::chrono::seconds(30) : std::chrono::seconds(0));
    while (true) {
      try {
        return cluster::own_address(options_.master);
      } catch (const DistributedError& error) {
        if (Clock::now() >= patience) throw ConfigError("--master-addr: {}", error.what());
      }
      check_interrupted();
      std::this_thread::sleep_for(look_again);
    }
  }

  void host_store() {
    const std::string address = listening_address();
    if (!cluster::resolves_to(options_.master, address) && !means_this_host_itself()) {
      throw ConfigError(
          "--master-addr {}: it is not an address of this host, {} ({}), which has node rank 0; start node rank 0 on the host with that address, or pass the address of this host to all",
          options_.master.host, own_card_.host, address);
    }
    try {
      Fd socket = cluster::bind_socket({address, options_.master.port});
      meeting_.server = std::make_shared<cluster::StoreServer>(
          std::move(socket), meeting_.secret,
          cluster::StoreServerOptions{.max_connections = 4096 + 16 * static_cast<size_t>(options_.nodes),
                                      .encrypt = options_.encrypt});
      meeting_.master_port = cluster::bind_socket({address, 0});
    } catch (const IoError& error) {
      throw ConfigError(
          "--master-port {}: {}; another program or an earlier job uses the port: end it, or pass another --master-port on all hosts",
          options_.master.port, error.what());
    }
    if (options_.secret.empty()) {
      log::warning(
          "the job's store at {} has no authentication: anyone who can connect to it can stop this job or change its results; set STRETTO_SECRET or STRETTO_SECRET_FILE to the same value on all hosts",
          meeting_.server->endpoint().text());
    }
  }

  // On Debian a host's own name resolves to 127.0.1.1.
  bool means_this_host_itself() const {
    return cluster::resolves_to(options_.master, "127.0.1.1") ||
           cluster::resolves_to(options_.master, "127.0.0.1") || cluster::resolves_to(options_.master, "::1");
  }

  void connect() {
    const cluster::Endpoint where = meeting_.server ? meeting_.server->endpoint() : options_.master;
    const auto start = Clock::now();
    auto next_note = start + progress_pause;
    for (bool first = true;; first = false) {
      std::string why;
      try {
        cluster::connect_socket(where, std::min(deadline_, Clock::now() + std::chrono::seconds(2)));
        break;
      } catch (const DistributedError& error) {
        why = error.what();
      }
      if (Clock::now() >= deadline_) {
        throw DistributedError(
            "no host with node rank 0 at --master-addr {} --master-port {} within {} s (--join-timeout): {}{}; start the launcher there, and let this host ({}) through its firewall",
            options_.master.host, options_.master.port,
            std::chrono::duration<double>(options_.join_timeout).count(), why, loopback_hint(),
            own_card_.host);
      }
      check_interrupted();
      if (first || Clock::now() >= next_note) {
        log::info("waiting for the host with node rank 0: {}", why);
        next_note = Clock::now() + progress_pause;
      }
      std::this_thread::sleep_for(look_again);
    }
    try {
      meeting_.client = std::make_shared<cluster::StoreClient>(
          where, meeting_.secret,
          cluster::StoreClientOptions{.connect_timeout = options_.host_timeout,
                                      .answer_timeout = options_.host_timeout,
                                      .host_process = "the launcher with node rank 0",
                                      .encrypt = options_.encrypt});
    } catch (const cluster::OneSideEncrypts& refusal) {
      throw ConfigError("--master-addr {}: {}; pass --encrypt on all hosts or on none", options_.master.host,
                        refusal.what());
    } catch (const cluster::PeerRefusal& refusal) {
      throw ConfigError("--master-addr {}: {}", options_.master.host, refusal.what());
    } catch (const DistributedError& error) {
      throw ConfigError(
          "--master-addr {}: {}; another program or job listens there, or the hosts have different secrets",
          options_.master.host, error.what());
    }
  }

  std::string loopback_hint() const {
    try {
      if (!means_this_host_itself() || options_.master.host.starts_with("127.") ||
          options_.master.host == "localhost")
        return "";
      return fmt::format(" (on this host, the name {} resolves to a loopback address)", options_.master.host);
    } catch (const DistributedError&) {
      return "";
    }
  }

  void take_node_rank() {
    HostPlan& plan = meeting_.plan;
    const int first = meeting_.server ? 0 : options_.node_rank.value_or(1);
    const int last = options_.node_rank.value_or(meeting_.server ? 0 : options_.nodes - 1);
    const std::string card = encode(own_card_);
    for (plan.node_rank = first; plan.node_rank <= last; ++plan.node_rank) {
      const std::string holder = meeting_.client->compare_set(key_of("card", plan.node_rank), "", card);
      if (holder == card) return;
      if (!options_.node_rank && !meeting_.server) continue;
      const HostCard other = decode_card(holder);
      throw refused(fmt::format(
          "--node-rank {}: {} (process {}) has joined the job at {} with this node rank before {} (process {}); each host needs a unique one from 0 to {}, and a separate job another --master-port",
          plan.node_rank, other.host, other.process, master_text(), own_card_.host, own_card_.process,
          options_.nodes - 1));
    }
    throw refused(fmt::format(
        "--nodes {}: {} hosts have joined the job at {} already; {} is one more. Start the launcher on {} hosts, or pass the number of hosts to all",
        options_.nodes, options_.nodes, master_text(), own_card_.host, options_.nodes));
  }

  // The error of a launcher that cannot join, which node 0 logs too.
  ConfigError refused(const std::string& why) {
    if (!meeting_.server) {
      const auto number = static_cast<int>(meeting_.client->add("hosts.refused", 1));
      meeting_.client->set(key_of("refused", number), why);
    }
    return ConfigError("{}", why);
  }

  // ---- node 0

  json judge() {
    std::vector<HostCard> cards;
    try {
      cards = collect();
    } catch (const DistributedError& error) {
      return {{"error", error.what()}, {"usage", false}};
    }
    const std::string differing = compare(cards);
    if (!differing.empty()) return {{"error", differing}, {"usage", true}};
    json plan = {{"master", cluster::bound_endpoint(meeting_.master_port).text()}};
    for (const HostCard& card : cards) plan["hosts"].push_back({card.host, card.ranks});
    return plan;
  }

  // Waits for all cards; a card without nodes represents a host that has not joined. Throws at once for a
  // host with another number of nodes.
  std::vector<HostCard> collect() {
    std::vector<HostCard> cards(static_cast<size_t>(options_.nodes));
    std::vector<bool> come(cards.size());
    auto next_note = Clock::now() + progress_pause;
    while (true) {
      std::vector<size_t> missing;
      for (size_t node = 0; node < cards.size(); ++node) {
        const std::string key = key_of("card", static_cast<int>(node));
        if (!come[node] && meeting_.client->check({key})) {
          cards[node] = decode_card(meeting_.client->get(key, std::chrono::seconds(1)));
          come[node] = true;
        }
        if (!come[node]) missing.push_back(node);
      }
      if (missing.empty()) return cards;
      if (std::ranges::any_of(
              cards, [&](const auto& card) { return card.nodes != 0 && card.nodes != options_.nodes; }))
        return cards;
      log_refused();
      const auto joined = cards.size() - missing.size();
      if (Clock::now() >= deadline_) {
        throw DistributedError(
            "only {} of {} hosts have joined the job at {} within {} s (--join-timeout); missing: {}{}",
            joined, options_.nodes, master_text(),
            std::chrono::duration<double>(options_.join_timeout).count(), numbered("node rank", missing),
            unproved_hosts());
      }
      check_interrupted();
      if (Clock::now() >= next_note) {
        log::info("{} of {} hosts have joined; waiting for {}{}", joined, options_.nodes,
                  numbered("node rank", missing), unproved_hosts());
        next_note = Clock::now() + progress_pause;
      }
      // Waits for the first missing host, which returns as soon as it joins.
      try {
        meeting_.client->wait({key_of("card", static_cast<int>(missing.front()))}, look_again);
      } catch (const cluster::StoreTimeout&) {
      }
    }
  }

  void log_refused() {
    for (std::string key = key_of("refused", refused_ + 1); meeting_.client->check({key});
         key = key_of("refused", refused_ + 1)) {
      log::warning("a launcher could not join: {}", meeting_.client->get(key, std::chrono::seconds(1)));
      ++refused_;
    }
  }

  std::string unproved_hosts() const {
    const std::string hosts = meeting_.server->unproved_hosts();
    if (hosts.empty()) return "";
    return fmt::format(
        "; could not join: {}; the launcher there says why; use the same secret, and --encrypt on all hosts or on none",
        hosts);
  }

  static std::string compare(const std::vector<HostCard>& cards) {
    std::vector<std::vector<Input>> inputs;
    std::vector<size_t> nodes_here;
    for (const HostCard& card : cards) {
      if (card.nodes == 0) continue;
      nodes_here.push_back(static_cast<size_t>(&card - cards.data()));
      auto& own = inputs.emplace_back();
      own.push_back({"--nodes", std::to_string(card.nodes)});
      for (const auto& [name, value, place] : card.inputs) own.push_back({name, value, place});
    }
    const std::string lines = differences(inputs, [&](const std::vector<size_t>& members) {
      std::vector<std::string> hosts;
      for (const size_t member : members)
        hosts.push_back(fmt::format("{} (node rank {})", cards[nodes_here[member]].host, nodes_here[member]));
      return fmt::format("{}", fmt::join(hosts, " and "));
    });
    if (lines.empty()) return "";
    return "the hosts differ:" + lines +
           "\nInstall the same version, and use the same options, recipe and files on every host";
  }

  // ---- the other nodes

  json await_verdict() {
    const auto patience = deadline_ + std::chrono::seconds(5);
    while (true) {
      try {
        return json::parse(meeting_.client->get("hosts.verdict", look_again), nullptr, false);
      } catch (const cluster::StoreTimeout&) {
        check_interrupted();
        if (Clock::now() > patience)
          throw DistributedError("the launcher with node rank 0 at {} has not decided", master_text());
      }
    }
  }

  void follow(const json& verdict) {
    const auto malformed = [&] {
      return DistributedError("the store at {} is one of another version of stretto", master_text());
    };
    if (!verdict.is_object()) throw malformed();
    try {
      if (verdict.contains("error")) {
        const auto text = verdict.at("error").get<std::string>();
        if (verdict.at("usage").get<bool>()) throw ConfigError("{}", text);
        throw DistributedError("{}", text);
      }
      HostPlan& plan = meeting_.plan;
      for (const json& host : verdict.at("hosts")) plan.hosts.push_back({host.at(0), host.at(1)});
      plan.master = cluster::parse_endpoint(verdict.at("master").get<std::string>(), "the job's MASTER_PORT");
      plan.store = meeting_.client->server();
    } catch (const json::exception&) {
      throw malformed();
    }
  }

  void check_interrupted() const {
    if (interrupted_()) throw DistributedError("interrupted while hosts were joining");
  }

  const HostOptions& options_;
  const std::function<bool()>& interrupted_;
  const OnListening& listening_;
  Clock::time_point deadline_;
  HostCard own_card_;
  HostMeeting meeting_;
  int refused_ = 0;  // launchers that node 0 has logged
};

}  // namespace

int HostPlan::world_size() const { return first_rank(static_cast<int>(hosts.size())); }

int HostPlan::first_rank(int node) const {
  int ranks = 0;
  for (int before = 0; before < node; ++before) ranks += hosts[static_cast<size_t>(before)].ranks;
  return ranks;
}

std::string HostPlan::describe(int node) const {
  const Host& host = hosts[static_cast<size_t>(node)];
  const int first = first_rank(node);
  const std::string ranks = host.ranks == 1 ? fmt::format("rank {}", first)
                                            : fmt::format("ranks {} to {}", first, first + host.ranks - 1);
  return fmt::format("{} (node rank {}, {})", host.name, node, ranks);
}

HostMeeting meet_hosts(const HostOptions& options, int ranks, const std::function<bool()>& interrupted,
                       const OnListening& listening) {
  return Meeting(options, ranks, interrupted, listening).run();
}

}  // namespace stretto::launch
