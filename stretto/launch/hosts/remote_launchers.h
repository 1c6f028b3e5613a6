#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stretto/base/wake.h"
#include "stretto/launch/hosts/host_options.h"
#include "stretto/launch/output/console.h"
#include "stretto/launch/output/lines.h"
#include "stretto/launch/process/spawn.h"

namespace stretto::launch {

// The launchers on the other hosts of HostOptions::list, each started by ssh, or what HostOptions::rsh names, as a process of this
// one. Each learns the rest over its standard input (join_order.h), and ends when that ends (stdin_watch.h): when this process
// dies, however it dies, or the connection to it breaks.
//
// What they write before the job has begun is kept for the report on one that ends too early; later it is shown, line by line.
class RemoteLaunchers {
 public:
  // REQUIRES: constructed on the thread on which it is destroyed; `console` outlives it. Throws ConfigError where ssh cannot be
  // started, IoError.
  RemoteLaunchers(const HostOptions& options, const cluster::Endpoint& store, const std::string& secret,
                  const SignalGuard& signals, Console& console);
  RemoteLaunchers(const RemoteLaunchers&) = delete;
  RemoteLaunchers& operator=(const RemoteLaunchers&) = delete;
  // Waits for their ends, for HostOptions::host_timeout if the job has begun; then ends their standard inputs
  // and waits as long again. What still runs is killed.
  ~RemoteLaunchers();

  // Before the job has begun: throws ConfigError or DistributedError, with its last lines, if one has ended.
  void check() const;
  void begin_job();

 private:
  struct Launcher {
    std::string host;
    int node;
    Process process;
    Fd input;
    std::array<Lines, 2> lines = {};
    std::deque<std::string> first_lines = {};
    std::optional<Ending> ending = {};
  };
  void carry_output();
  void read(Launcher& launcher, int stream);
  void take_line(Launcher& launcher, int stream, std::string_view line);
  bool wait_for_ends() const;

  std::string rsh_;
  Console& console_;
  std::chrono::milliseconds patience_;
  Wake wake_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Launcher> launchers_;
  bool job_begun_ = false;
  std::thread thread_;
};

}  // namespace stretto::launch
