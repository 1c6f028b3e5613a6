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
fault() { date +%s.%N > fault; "$@"; }
end() { wait "$job"; exit $?; }
)");
  std::string script = HOSTS_SCRIPT;
  for (size_t host = 0; host < commands.size(); ++host) {
    const std::string own = fmt::format(
        "cd {}; (. ./host_functions; {}) > out.{} 2> err.{}; code=$?; date +%s.%N > end.{}; sleep 0.5; "
        "for p in /proc/[0-9]*; do [ ${{p#/proc/}} -gt 1 ] && [ \"$(cut -c1 $p/cmdline 2>/dev/null)\" ] && cat $p/comm; done > left.{} "
        "2>/dev/null; echo $code > code.{}",
        folder.string(), commands[host], host, host, host, host, host);
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
    if (std::filesystem::exists(folder / "fault")) {
      result.seconds_after_fault = parse_double(trim(text("end", host))).value_or(1e9) -
                                   parse_double(trim(read_file(folder / "fault"))).value_or(0);
    }
    for (const std::string_view name : split(text("left", host), '\n')) {
      const bool own = name.empty() || name == "sh" || name == "cut" || name == "cat";
      if (!own) result.left.emplace_back(name);
    }
  }
  return results;
}

}  // namespace stretto
