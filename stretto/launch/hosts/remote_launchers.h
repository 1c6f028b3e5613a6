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

// The launchers on the other hosts of HostOptions::list, each started by ssh, or HostOptions::rsh, as a child
// process. Each reads the job from its standard input (join_order.h) and ends at the end of that
// (stdin_watch.h), that is, when this process dies for any reason or the connection breaks.
//
// Their output before the job has begun is kept for the report on one that ends too early; later output is
// shown line by line.
class RemoteLaunchers {
 public:
  // REQUIRES: constructed and destroyed on one thread; `console` outlives it. Throws ConfigError if ssh
  // cannot be started, IoError.
  RemoteLaunchers(const HostOptions& options, const cluster::Endpoint& store, const std::string& secret,
                  const SignalGuard& signals, Console& console);
  RemoteLaunchers(const RemoteLaunchers&) = delete;
  RemoteLaunchers& operator=(const RemoteLaunchers&) = delete;
  // Waits for the launchers to end, for HostOptions::host_timeout if the job has begun; then closes their
  // standard inputs, waits for the same time again, and kills those that still run.
  ~RemoteLaunchers();

  // Throws ConfigError or DistributedError, with its last lines, if a launcher has ended before the job has
  // begun.
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
