#include "stretto/launch/hosts/join_order.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/launch/process/rank_environment.h"

namespace stretto::launch {
namespace {

constexpr const char* variable = "STRETTO_JOIN";
constexpr std::array<std::string_view, 7> shared = {"STRETTO_", "OMP_",  "MKL_",  "KMP_",
                                                    "NCCL_",    "GLOO_", "TORCH_"};

// Reads byte by byte, so that bytes after the line stay in standard input.
std::string read_line() {
  constexpr size_t longest = size_t{1} << 20;
  constexpr int patience_ms = 60'000;
  std::string line;
  while (line.size() < longest) {
    pollfd watched{STDIN_FILENO, POLLIN, 0};
    char byte = 0;
    if (::poll(&watched, 1, patience_ms) != 1 || ::read(STDIN_FILENO, &byte, 1) != 1) return "";
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

}  // namespace

std::string encode(const JoinOrder& order) {
  return nlohmann::json{{"nodes", order.nodes},
                        {"node_rank", order.node_rank},
                        {"ranks", order.ranks},
                        {"master_addr", order.master.host},
                        {"master_port", order.master.port},
                        {"secret", order.secret},
                        {"environment", order.environment}}
             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

std::string join_command() {
  std::string text = fmt::format("cd {} && exec env {}=stdin",
                                 shell_word(std::filesystem::current_path().string()), variable);
  for (const std::string& word : own_command()) text += " " + shell_word(word);
  return text;
}

std::map<std::string, std::string> shared_environment() {
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : own_environment()) {
    const bool is_secret = name.starts_with("STRETTO_SECRET") || name == variable;
    if (!is_secret && std::ranges::any_of(shared, [&](auto prefix) { return name.starts_with(prefix); }))
      kept[name] = value;
  }
  return kept;
}

std::optional<JoinOrder> read_join_order() {
  const char* source = std::getenv(variable);
  if (source == nullptr || *source == '\0') return std::nullopt;
  ::unsetenv(variable);
  try {
    const auto json = nlohmann::json::parse(read_line());
    JoinOrder order{.nodes = json.at("nodes"), .node_rank = json.at("node_rank"), .ranks = json.at("ranks")};
    order.master = {json.at("master_addr"), json.at("master_port")};
    order.secret = json.at("secret");
    order.environment = json.at("environment");
    for (const auto& [name, value] : order.environment) ::setenv(name.c_str(), value.c_str(), 1);
    return order;
  } catch (const nlohmann::json::exception&) {
    throw ConfigError(
        "environment: {} is set, but standard input has no order of a job's first launcher; unset {}",
        variable, variable);
  }
}

}  // namespace stretto::launch
