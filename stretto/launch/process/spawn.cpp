#include "stretto/launch/process/spawn.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto::launch {
namespace {

// The limit on open descriptors at the start of this process, which the ranks inherit. The launcher itself
// needs two descriptors per rank, three until its program runs, and raises its own limit as far as permitted.
rlimit descriptor_limit() {
  static const rlimit first = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &raised);
    return limit;
  }();
  return first;
}

// The reason why a call that creates descriptors failed, with the limit if that was reached.
std::string no_descriptor() {
  const int error = errno;
  if (error != EMFILE) return std::strerror(error);
  return fmt::format(
      "Too many open files; the launcher needs up to three per rank, and the limit is {} (ulimit -Hn): start fewer ranks, or raise the limit",
      descriptor_limit().rlim_max);
}

// Whether the signal mask after `label` in a /proc/<pid>/status contains `signal`.
bool in_mask(const std::string& status, std::string_view label, int signal) {
  const size_t position = status.find(label);
  if (position == std::string::npos) return false;
  const unsigned long long mask = std::strtoull(status.c_str() + position + label.size(), nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Everything that the child needs, prepared before the fork: between fork and exec only async-signal-safe
// calls are allowed, since another thread of the launcher may hold a lock of the heap at that moment.
struct ChildPlan {
  const char* program;
  char** command;
  char** environment;
  const SignalGuard* signals;
  std::array<cpu_set_t, 16> cores;  // up to 16,384; the kernel ignores those that do not exist
  bool pinned;
  int in, out, err, failure;
  int inherited;
  bool hold_save;
  rlimit open_files;
  pid_t launcher;
};

[[noreturn]] void become_child(const ChildPlan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.launcher) ::_exit(1);  // the launcher died before the line above
  const bool wired = ::dup2(plan.in, STDIN_FILENO) >= 0 && ::dup2(plan.out, STDOUT_FILENO) >= 0 &&
                     ::dup2(plan.err, STDERR_FILENO) >= 0;
  const bool is_pinned = !plan.pinned || ::sched_setaffinity(0, sizeof plan.cores, plan.cores.data()) == 0;
  if (wired && is_pinned) {
    if (plan.inherited >= 0) ::fcntl(plan.inherited, F_SETFD, 0);
    ::setrlimit(RLIMIT_NOFILE, &plan.open_files);
    plan.signals->restore_for_child(plan.hold_save);
    ::execve(plan.program, plan.command, plan.environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.failure, &error, sizeof error);
  ::_exit(127);
}

// The reason why the file cannot be run; nullopt if it can.
std::optional<std::string> why_not(const std::filesystem::path& path) {
  if (::access(path.c_str(), F_OK) != 0) return std::strerror(errno);
  if (std::filesystem::is_directory(path)) return "it is a folder";
  if (::access(path.c_str(), X_OK) != 0)
    return "it is not executable; write its interpreter before it, or chmod +x";
  return std::nullopt;
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw IoError("cannot create a pipe: {}", no_descriptor());
  return {Fd(ends[0]), Fd(ends[1])};
}

std::filesystem::path find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) {
    if (const auto reason = why_not(name)) throw ConfigError("cannot start {}: {}", name, *reason);
    return name;
  }
  for (const std::string_view folder : split(path, ':')) {
    const std::filesystem::path candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (!why_not(candidate)) return candidate;
  }
  const bool is_here = ::access(name.c_str(), F_OK) == 0;
  throw ConfigError(
      "cannot start {}: there is no such program in PATH{}", name,
      is_here ? fmt::format("; for the file in this folder write ./{}, or its interpreter before it", name)
              : "");
}

std::string process_state(pid_t pid) {
  // The state follows the name, which is in parentheses and may contain any character.
  const std::string status = read_if_readable(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = status.rfind(')');
  return name_end + 2 < status.size() ? status.substr(name_end + 2, 1) : "";
}

std::string Ending::text() const {
  if (!start_error.empty()) return start_error;
  if (signal == 0) return fmt::format("ended with exit code {}", code);
  return fmt::format("was killed by {}", signal_text(signal));
}

Process::Process(const SpawnOptions& options, const SignalGuard& signals)
    : program_(options.program), hold_save_(options.hold_save) {
  descriptor_limit();
  Pipe out = make_pipe(), err = make_pipe(), failure = make_pipe();
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) throw IoError("cannot open /dev/null: {}", no_descriptor());
  const std::vector<char*> command = pointers(options.command);
  const std::vector<char*> environment = pointers(options.environment);
  ChildPlan plan{.program = options.program.c_str(),
                 .command = const_cast<char**>(command.data()),
                 .environment = const_cast<char**>(environment.data()),
                 .signals = &signals,
                 .cores = {},
                 .pinned = !options.cores.empty(),
                 .in = options.input >= 0   ? options.input
                       : options.keep_stdin ? STDIN_FILENO
                                            : nothing.get(),
                 .out = out.write.get(),
                 .err = err.write.get(),
                 .failure = failure.write.get(),
                 .inherited = options.inherited,
                 .hold_save = options.hold_save,
                 .open_files = descriptor_limit(),
                 .launcher = ::getpid()};
  for (const int core : options.cores) CPU_SET_S(core, sizeof plan.cores, plan.cores.data());

  pid_ = ::fork();
  if (pid_ < 0) throw IoError("cannot start a process: {}", std::strerror(errno));
  if (pid_ == 0) become_child(plan);
  alive_ = true;
  ::setpgid(pid_, pid_);  // both parent and child call it, so that the group exists whichever runs first
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
  starting_ = std::move(failure.read);
  ::fcntl(starting_.get(), F_SETFL, O_NONBLOCK);
}

Process::Process(Process&& other) noexcept
    : program_(std::move(other.program_)),
      pid_(other.pid_),
      alive_(std::exchange(other.alive_, false)),
      hold_save_(other.hold_save_),
      was_killed_(other.was_killed_),
      starting_(std::move(other.starting_)),
      start_error_(other.start_error_),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)) {}

Process::~Process() {
  constexpr int patience_ms = 2000, look_ms = 5;  // the kernel may wait in it for a disk that never answers
  if (!alive_) return;
  ::kill(-pid_, SIGKILL);
  for (int waited = 0; waited < patience_ms && ::waitpid(pid_, nullptr, WNOHANG) == 0; waited += look_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(look_ms));
  }
}

bool Process::starting() {
  if (!starting_) return false;
  const ssize_t got = ::read(starting_.get(), &start_error_, sizeof start_error_);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  starting_.reset();
  return false;
}

void Process::signal(int signal) {
  if (!alive_) return;
  was_killed_ |= signal == SIGKILL;
  ::kill(-pid_, signal);
}

bool Process::handles(int signal) const {
  if (!alive_) return false;
  const std::string status = read_file(fmt::format("/proc/{}/status", pid_));
  // A blocked signal is no evidence for other programs: a shell blocks all signals for a moment when it
  // forks.
  return in_mask(status, "\nSigCgt:\t", signal) || (hold_save_ && in_mask(status, "\nSigBlk:\t", signal));
}

bool Process::has_ended() const {
  siginfo_t info{};
  if (!alive_) return true;
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

std::optional<Ending> Process::reap() {
  siginfo_t info{};
  if (!alive_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return std::nullopt;
  if (info.si_pid == 0) return std::nullopt;
  // The group's number cannot be reused before the child is reaped.
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  alive_ = false;
  starting();  // reads a failure of exec
  if (start_error_ != 0) {
    return Ending{
        .code = usage_error,
        .start_error = fmt::format("could not start {}: {}", program_.string(), std::strerror(start_error_))};
  }
  const bool exited = info.si_code == CLD_EXITED;
  return Ending{.code = exited ? info.si_status : 0, .signal = exited ? 0 : info.si_status};
}

}  // namespace stretto::launch
