#include "stretto/trainer/run/evaluation_process.h"

#include <csignal>
#include <cstring>

#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/environment.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/launch/process/rank_environment.h"
#include "stretto/launch/process/spawn.h"

namespace stretto::trainer {
namespace {

// While it exists, this thread may use the cores of its launcher, which pins ranks; a process that is started
// inherits them.
class CoresOfLauncher {
 public:
  CoresOfLauncher() {
    cpu_set_t cores;
    pinned_ = ::sched_getaffinity(0, sizeof own_, &own_) == 0 &&
              ::sched_getaffinity(::getppid(), sizeof cores, &cores) == 0 &&
              ::sched_setaffinity(0, sizeof cores, &cores) == 0;
  }
  ~CoresOfLauncher() {
    if (pinned_) ::sched_setaffinity(0, sizeof own_, &own_);
  }
  CoresOfLauncher(const CoresOfLauncher&) = delete;
  CoresOfLauncher& operator=(const CoresOfLauncher&) = delete;

 private:
  cpu_set_t own_{};
  bool pinned_ = false;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Starts this program with `inherited` open, in a process group that signals to the ranks do not reach.
pid_t spawn_self(int inherited, int gpu) {
  launch::Environment variables = launch::own_environment();
  variables.erase("STRETTO_TERMINAL");
  variables[cluster::evaluation_variable] = std::to_string(inherited);
  variables["LOCAL_RANK"] = std::to_string(gpu);
  std::vector<std::string> command = launch::own_command(), environment = launch::as_list(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, inherited, inherited);  // keeps it open
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const CoresOfLauncher cores;
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, command[0].c_str(), &actions, &attributes, pointers(command).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw IoError("evaluate.async: cannot start {} to evaluate: {}", command[0], std::strerror(error));
  return pid;
}

}  // namespace

EvaluationProcess::EvaluationProcess(nlohmann::json samples, int gpu)
    : samples_(std::move(samples)), gpu_(gpu) {
  start();
}

EvaluationProcess::~EvaluationProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void EvaluationProcess::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw IoError("evaluate.async: cannot create a socket: {}", std::strerror(errno));
  const Fd theirs(ends[1]);
  socket_ = std::make_unique<MessageSocket>(Fd(ends[0]));
  pid_ = spawn_self(theirs.get(), gpu_);
  log::info("evaluation in process {}, while the ranks train", pid_);
}

// How the process ended, after its end of the socket was closed.
std::string EvaluationProcess::end_text() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  const std::string text = launch::Ending{.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                                          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0}
                               .text();
  return fmt::format("process {}, which evaluates, {}", std::exchange(pid_, -1), text);
}

void EvaluationProcess::restart() {
  const std::string end = end_text();
  const auto step = request_.at("step").get<int64_t>();
  if (restarted_) {
    throw Error(
        "evaluate.async: {}, again while step {} was evaluated; its messages are in logger_logs/evaluation.log and above. Resume the run with evaluate.async: false to evaluate in the ranks",
        end, step);
  }
  log::warning("evaluate.async: {}; it is started again to evaluate step {}", end, step);
  restarted_ = true;
  start();
  send();
}

// If the process has ended, take() notices.
void EvaluationProcess::send() { socket_->send(request_); }

void EvaluationProcess::submit(int64_t step, const std::filesystem::path& weights) {
  restarted_ = false;
  request_ = {{"id", ++requests_}, {"step", step}, {"weights", weights.string()}, {"validation", samples_}};
  send();
}

std::optional<Validated> EvaluationProcess::take(std::chrono::milliseconds patience) {
  while (!request_.is_null()) {
    const auto reply = socket_->receive(patience);
    if (socket_->ended()) {
      restart();
      continue;
    }
    if (!reply) return std::nullopt;
    if (reply->at("id") != requests_) continue;
    if (reply->contains("error")) {
      throw Error("evaluate.async: the evaluation of step {} failed: {}", request_.at("step").get<int64_t>(),
                  reply->at("error").get<std::string>());
    }
    request_ = nullptr;
    return Validated::from_json(reply->at("result"));
  }
  return std::nullopt;
}

}  // namespace stretto::trainer
