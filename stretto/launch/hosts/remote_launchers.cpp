#include "stretto/launch/hosts/remote_launchers.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/launch/hosts/join_order.h"
#include "stretto/launch/process/rank_environment.h"

namespace stretto::launch {
namespace {

// With these options, ssh fails instead of waiting for an answer (a password, an unknown host's key).
constexpr const char* standard_rsh = "ssh -o BatchMode=yes -o ConnectTimeout=10";
constexpr size_t kept_lines = 20;
constexpr int poll_pause_ms = 50;

Environment without_secrets() {
  Environment environment = own_environment();
  environment.erase("STRETTO_SECRET");
  environment.erase("STRETTO_SECRET_FILE");
  return environment;
}

Process start_remote(const std::string& rsh, const std::string& host, const std::string& command,
                     const Fd& input, const SignalGuard& signals) {
  return Process({.program = "/bin/sh",
                  .command = {"sh", "-c", "exec " + rsh + " \"$@\"", "sh", host, command},
                  .environment = as_list(without_secrets()),
                  .input = input.get()},
                 signals);
}

void write_order(const Fd& pipe, const std::string& text) {
  constexpr size_t capacity = 65536;  // of a pipe; writing more would block
  if (text.size() > capacity)
    throw ConfigError("environment: the variables for the other hosts are too long");
  // The reader may have ended.
  [[maybe_unused]] const ssize_t written = ::write(pipe.get(), text.data(), text.size());
}

std::string hint(const std::string& rsh, const std::string& host, const Ending& ending) {
  constexpr int not_found = 127, not_executable = 126, connection_failed = 255;
  if (ending.signal == 0 && ending.code == connection_failed)
    return fmt::format("; check that `{} {} true` works without a question", rsh, host);
  if (ending.signal == 0 && (ending.code == not_found || ending.code == not_executable))
    return "; the program must have the same path on all hosts";
  return "";
}

}  // namespace

RemoteLaunchers::RemoteLaunchers(const HostOptions& options, const cluster::Endpoint& store,
                                 const std::string& secret, const SignalGuard& signals, Console& console)
    : rsh_(options.rsh.empty() ? standard_rsh : options.rsh),
      console_(console),
      patience_(options.host_timeout) {
  const std::string command = join_command();
  JoinOrder order{.nodes = options.nodes, .master = store, .secret = secret};
  order.environment = shared_environment();
  for (int node = 1; node < options.nodes; ++node) {
    const ListedHost& host = options.list[static_cast<size_t>(node)];
    order.node_rank = node;
    order.ranks = host.ranks;
    auto [read_end, write_end] = make_pipe();
    launchers_.push_back(
        {host.name, node, start_remote(rsh_, host.name, command, read_end, signals), std::move(write_end)});
    write_order(launchers_.back().input, encode(order));
  }
  thread_ = std::thread([this] { carry_output(); });
}

RemoteLaunchers::~RemoteLaunchers() {
  if (!job_begun_ || !wait_for_ends()) {
    {
      const std::lock_guard lock(mutex_);
      for (Launcher& launcher : launchers_) launcher.input.reset();
    }
    wait_for_ends();
  }
  wake_.wake();
  thread_.join();
}

bool RemoteLaunchers::wait_for_ends() const {
  const auto deadline = cluster::Clock::now() + patience_;
  while (cluster::Clock::now() < deadline) {
    {
      const std::lock_guard lock(mutex_);
      if (std::ranges::all_of(launchers_, [](const auto& launcher) { return launcher.ending.has_value(); }))
        return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

void RemoteLaunchers::check() const {
  const std::lock_guard lock(mutex_);
  for (const Launcher& launcher : launchers_) {
    if (!launcher.ending) continue;
    std::string text =
        fmt::format("the launcher on {} (node rank {}) {} before it joined the job{}", launcher.host,
                    launcher.node, launcher.ending->text(), hint(rsh_, launcher.host, *launcher.ending));
    for (std::string_view line : launcher.first_lines) text += fmt::format("\n  {}", line);
    constexpr int not_executable = 126, not_found = 127;
    const int code = launcher.ending->exit_code();
    if (code == usage_error || code == not_executable || code == not_found) throw ConfigError("{}", text);
    throw DistributedError("{}", text);
  }
}

void RemoteLaunchers::begin_job() {
  const std::lock_guard lock(mutex_);
  job_begun_ = true;
  for (Launcher& launcher : launchers_) launcher.first_lines.clear();
}

void RemoteLaunchers::carry_output() {
  while (true) {
    std::vector<pollfd> watched = {{wake_.fd(), POLLIN, 0}};
    for (Launcher& launcher : launchers_) {
      watched.push_back({console_.full(0) ? -1 : launcher.process.out().get(), POLLIN, 0});
      watched.push_back({console_.full(1) ? -1 : launcher.process.err().get(), POLLIN, 0});
    }
    ::poll(watched.data(), watched.size(), poll_pause_ms);
    const std::lock_guard lock(mutex_);
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) read(launchers_[(i - 1) / 2], static_cast<int>((i - 1) % 2));
    }
    for (Launcher& launcher : launchers_) {
      if (launcher.ending) continue;
      launcher.ending = launcher.process.reap();
      for (const int stream : {0, 1}) {
        if (!launcher.ending) continue;
        launcher.input.reset();
        read(launcher, stream);
        launcher.lines[static_cast<size_t>(stream)].finish(
            [&](std::string_view line) { take_line(launcher, stream, line); });
      }
    }
    if (watched[0].revents != 0) return;
  }
}

// Reads all available output; never blocks.
void RemoteLaunchers::read(Launcher& launcher, int stream) {
  Fd& from = stream == 0 ? launcher.process.out() : launcher.process.err();
  std::array<char, 16384> bytes;
  while (from) {
    const ssize_t got = ::read(from.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return from.reset();
    launcher.lines[static_cast<size_t>(stream)].feed(
        {bytes.data(), static_cast<size_t>(got)},
        [&](std::string_view line) { take_line(launcher, stream, line); });
    if (console_.full(stream)) return;
  }
}

void RemoteLaunchers::take_line(Launcher& launcher, int stream, std::string_view line) {
  if (job_begun_) return console_.line(stream, line);
  constexpr std::string_view mark = "stretto: error: ";
  if (line.starts_with(mark)) line.remove_prefix(mark.size());
  launcher.first_lines.emplace_back(line);
  if (launcher.first_lines.size() > kept_lines) launcher.first_lines.pop_front();
}

}  // namespace stretto::launch
