#include "tests/support/shell.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/socket.h"

namespace stretto {
namespace {

void redirect(const char* path, int flags, int to) {
  const int fd = ::open(path, flags, 0600);
  if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(127);
}

pid_t parent_of(const std::filesystem::path& process) {
  const std::string status = read_proc(process / "stat");
  const size_t name_end = status.rfind(')');  // "<pid> (<name>) <state> <parent> ..."
  if (name_end == std::string::npos) return -1;
  const auto fields = split(std::string_view(status).substr(name_end + 2), ' ');
  return static_cast<pid_t>(parse_int(fields.at(1)).value_or(-1));
}

}  // namespace

// Files in /proc have size 0 regardless of their content.
std::string read_proc(const std::filesystem::path& path) {
  try {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure&) {
    return "";  // the process ended in between
  }
}

BackgroundShell::BackgroundShell(const std::string& command) {
  const std::string out = folder_.path() / "out", err = folder_.path() / "err";
  pid_ = ::fork();
  if (pid_ < 0) throw IoError("cannot fork");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
}

BackgroundShell::~BackgroundShell() {
  if (!ended_) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

bool BackgroundShell::running() const {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

std::string BackgroundShell::out() const { return read_proc(folder_.path() / "out"); }
std::string BackgroundShell::err() const { return read_proc(folder_.path() / "err"); }

ShellResult BackgroundShell::wait(std::chrono::seconds patience) {
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(pid_, &status, WNOHANG)) == 0 &&
         std::chrono::steady_clock::now() - start_ < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (got == 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ended_ = true;
  ShellResult result = {-1, out(), err()};
  if (got == 0) result.err += fmt::format("\n(not done within {} s: killed by the test)\n", patience.count());
  if (got > 0) result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

ShellResult shell(const std::string& command) { return BackgroundShell(command).wait(); }

std::string with_file_fault(const std::string& fault) {
  return fmt::format("LD_PRELOAD={} STRETTO_FILE_FAULT={} ", FILE_FAULT_LIBRARY, fault);
}

int free_port() { return cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port; }

std::string torchrun_variables(int rank, int world_size, int port) {
  return fmt::format(
      "RANK={0} LOCAL_RANK={0} WORLD_SIZE={1} LOCAL_WORLD_SIZE={1} MASTER_ADDR=127.0.0.1 MASTER_PORT={2} ",
      rank, world_size, port);
}

std::vector<pid_t> children_of(pid_t parent, const std::string& variable) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = parse_int(entry.path().filename().string());
    if (!pid || parent_of(entry.path()) != parent) continue;
    const std::string environment = '\0' + read_proc(entry.path() / "environ");
    const bool matches = variable.empty() || environment.find('\0' + variable + '\0') != std::string::npos;
    if (matches) children.push_back(static_cast<pid_t>(*pid));
  }
  return children;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace stretto
