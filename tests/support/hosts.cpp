#include "tests/support/hosts.h"

#include "tests/support/shell.h"
#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto {
namespace {

std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::optional<std::string> why_no_hosts() {
  const ShellResult probe = shell(HOSTS_SCRIPT);
  if (probe.exit_code == 0) return std::nullopt;
  return std::string(trim(probe.err));
}

std::string on_hosts(int hosts, int ranks_per_host, const std::string& command) {
  std::string result = HOSTS_SCRIPT;
  for (int host = 0; host < hosts; ++host) {
    std::string ranks;
    for (int local_rank = 0; local_rank < ranks_per_host; ++local_rank) {
      ranks += fmt::format(
          "(export RANK={} LOCAL_RANK={} WORLD_SIZE={} LOCAL_WORLD_SIZE={} GROUP_RANK={} MASTER_ADDR=10.77.0.1 MASTER_PORT=29500; {}) & ranks=\"$ranks $!\"; ",
          host * ranks_per_host + local_rank, local_rank, hosts * ranks_per_host, ranks_per_host, host,
          command);
    }
    ranks += "for rank in $ranks; do wait $rank || status=${status:-$?}; done; exit ${status:-0}";
    result += " " + in_quotes(ranks);
  }
  return result;
}

}  // namespace stretto
