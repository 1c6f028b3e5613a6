#include "tests/support/hosts.h"

#include "tests/support/shell.h"
#include <fmt/format.h>

#include "stretto/base/files.h"
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

std::vector<HostResult> run_on_hosts(const std::filesystem::path& folder,
                                     const std::vector<std::string>& commands,
                                     std::chrono::seconds patience) {
  write_file_atomic(folder / "host_functions", R"(
background() { "$@" & job=$!; }
await() { until [ -e "$1" ] && grep -q -- "${2-}" "$1"; do sleep 0.02; done; }
end() { wait "$job"; exit $?; }
left() {
  for process in /proc/[0-9]*; do
    words=; read -r words < "$process/cmdline"
    [ "${process#/proc/}" -gt 1 ] && [ "$words" ] && read -r name < "$process/comm" && echo "$name"
  done
}
look() {
  for try in $(seq 50); do
    left > "left.$1" 2> /dev/null
    [ -s "left.$1" ] || break
    sleep 0.02
  done
}
)");
  std::string script = HOSTS_SCRIPT;
  for (size_t host = 0; host < commands.size(); ++host) {
    const std::string own = fmt::format(
        "cd {0}; rm -f code.{2}; . ./host_functions; ({1}) > out.{2} 2> err.{2}; echo $? > code.{2}; look {2}",
        folder.string(), commands[host], host);
    script += " " + in_quotes(own);
  }
  BackgroundShell(script).wait(patience);
  const auto text = [&](const std::string& name, size_t host) {
    const auto file = folder / fmt::format("{}.{}", name, host);
    return std::filesystem::exists(file) ? read_file(file) : std::string();
  };
  std::vector<HostResult> results(commands.size());
  for (size_t host = 0; host < commands.size(); ++host) {
    HostResult& result = results[host];
    result.exit_code = static_cast<int>(parse_int(trim(text("code", host))).value_or(-1));
    result.out = text("out", host);
    result.err = text("err", host);
    for (const std::string_view name : split(text("left", host), '\n')) {
      if (!name.empty()) result.left.emplace_back(name);
    }
  }
  return results;
}

}  // namespace stretto
