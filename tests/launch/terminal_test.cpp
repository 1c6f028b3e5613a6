#include <csignal>
#include <list>
#include <mutex>
#include <thread>

#include "tests/train/workspace.h"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

// Tests `stretto train` and `stretto launch` on a real terminal, and on pipes whose readers stop or exit.
namespace stretto {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Whether the process blocks, handles or ignores `signal`, which then does not end it.
bool holds_back(pid_t pid, int signal) {
  std::string status;
  try {
    status = read_file(fmt::format("/proc/{}/status", pid));
  } catch (const IoError&) {
    return false;
  }
  for (const char* mask : {"SigBlk:\t", "SigIgn:\t", "SigCgt:\t"}) {
    const size_t begin = status.find(mask);
    if (begin == std::string::npos) continue;
    if (std::stoull(status.substr(begin + 8, 16), nullptr, 16) >> (signal - 1) & 1) return true;
  }
  return false;
}

const std::string stretto = STRETTO_PROGRAM;

// Runs a shell command as the session leader of a new pseudo terminal, whose output this object reads like a
// terminal window.
class Terminal {
 public:
  explicit Terminal(const std::string& command, int columns = 80) {
    winsize size{
        .ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    master_ = Fd(master);
    ::fcntl(master, F_SETFL, O_NONBLOCK);
    reader_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void stop_reading() { reading_ = false; }
  void go_on_reading() { reading_ = true; }
  void type(const std::string& keys) {
    EXPECT_EQ(::write(master_.get(), keys.data(), keys.size()), std::ssize(keys));
  }
  void resize(int columns) {
    const winsize size{
        .ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  void close() {
    reader_.request_stop();
    reader_.join();
    master_.reset();
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool shows(const std::string& words) const {
    return eventually([&] { return text().find(words) != std::string::npos; });
  }
  // Returns the exit code as in ShellResult; -1 if the command has not ended within a minute.
  int exit_code() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  void read(const std::stop_token& stop) {
    char chunk[4096];
    while (!stop.stop_requested()) {
      const ssize_t got = reading_ ? ::read(master_.get(), chunk, sizeof chunk) : 0;
      if (got > 0) {
        const std::lock_guard lock(mutex_);
        text_.append(chunk, static_cast<size_t>(got));
      } else {
        std::this_thread::sleep_for(5ms);
      }
    }
  }

  pid_t pid_ = -1;
  Fd master_;
  std::atomic<bool> reading_ = true;
  mutable std::mutex mutex_;
  std::string text_;
  std::jthread reader_;
};

// A run that would take days.
class EndlessRun : public ::testing::Test {
 protected:
  std::string command(const std::string& settings = "") const {
    return workspace_.command("train", 2, "training.max_steps=1000000 evaluate.every=never " + settings);
  }
  bool steps_done() const { return workspace_.recorded_lines("run") > 0; }
  bool steps_go_on() const {
    const int64_t before = workspace_.recorded_lines("run");
    return eventually([&] { return workspace_.recorded_lines("run") > before + 50; });
  }
  bool saved() const {
    return workspace_.has("run/checkpoints") &&
           !std::filesystem::is_empty(workspace_.path("run/checkpoints"));
  }
  std::string log() const { return workspace_.read("run/logger_logs/training_0.log"); }

  Workspace workspace_;
};

TEST_F(EndlessRun, IsSavedWhenItsTerminalCloses) {
  Terminal terminal(command("track.progress=auto"));
  ASSERT_TRUE(eventually([&] { return steps_done(); })) << terminal.text();
  terminal.close();  // the session leader, which is the launcher, gets SIGHUP
  EXPECT_EQ(terminal.exit_code(), 0);
  EXPECT_TRUE(saved());
  EXPECT_THAT(log(), HasSubstr("the state is saved"));
}

// The output of the terminal since `begin`, with each state of the live line as an element.
std::vector<std::string> states(const std::string& text, size_t begin) {
  std::vector<std::string> states;
  for (const std::string_view state : split(std::string_view(text).substr(begin), '\r')) {
    states.emplace_back(state.starts_with("\033[K") ? state.substr(3) : state);
  }
  if (!states.empty()) states.pop_back();  // incomplete
  return states;
}

TEST_F(EndlessRun, ShowsALineThatFitsItsTerminalAlsoAfterAResize) {
  Terminal terminal(command("track.progress=auto"), 80);
  ASSERT_TRUE(terminal.shows("0 % [")) << terminal.text();
  size_t begin = terminal.text().find("0 % [");
  for (const int columns : {80, 40, 120}) {
    terminal.resize(columns);
    const auto shows_states = [&](size_t count) {
      return eventually([&] { return states(terminal.text(), begin).size() > count; });
    };
    if (columns != 80) {
      begin = terminal.text().size();
      ASSERT_TRUE(shows_states(2));  // some of them may have the previous width
      begin = terminal.text().size();
    }
    ASSERT_TRUE(shows_states(3));
    size_t longest = 0;
    const auto shown = states(terminal.text(), begin);
    for (size_t i = 1; i < shown.size(); ++i) {
      EXPECT_THAT(shown[i], AllOf(HasSubstr(" % ["), Not(HasSubstr("\n"))));
      longest = std::max(longest, shown[i].size());
    }
    EXPECT_LT(longest, static_cast<size_t>(columns));
    EXPECT_GT(longest, static_cast<size_t>(columns) / 2);
  }
}

TEST_F(EndlessRun, ContinuesUnderNohupWhenItsTerminalCloses) {
  Terminal terminal("trap '' HUP; " + command("track.progress=auto"));
  ASSERT_TRUE(eventually([&] { return steps_done(); })) << terminal.text();
  const pid_t launcher = terminal.pid();
  terminal.close();
  EXPECT_TRUE(steps_go_on());
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(terminal.exit_code(), 0);
  EXPECT_TRUE(saved());
}

TEST_F(EndlessRun, IsSavedByCtrlCThatEndsTheReaderOfItsOutput) {
  Terminal terminal("bash -c 'set -o pipefail; (" + command() + ") 2>&1 | tee " + workspace_.path("tee") +
                    "'");
  ASSERT_TRUE(eventually([&] { return steps_done(); })) << terminal.text();
  terminal.type("\x03");
  terminal.exit_code();
  EXPECT_TRUE(eventually([&] { return saved(); })) << terminal.text();
  EXPECT_THAT(log(), HasSubstr("the state is saved"));
}

TEST_F(EndlessRun, ToleratesAFullDiskOfItsOutput) {
  BackgroundShell run("(" + command() + ") > /dev/full 2>&1");
  ASSERT_TRUE(eventually([&] { return steps_done(); }));
  EXPECT_TRUE(steps_go_on());
  for (const pid_t launcher : children_of(run.pid())) ::kill(launcher, SIGINT);
  EXPECT_EQ(run.wait().exit_code, 0);
  EXPECT_TRUE(saved());
}

TEST_F(EndlessRun, SavesOnRequestHoweverEarly) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer holds signals back, too, before the program does";
#endif
  for (const auto moment : {0ms, 10ms, 60ms, 200ms, 400ms, 800ms}) {
    std::filesystem::remove_all(workspace_.path("run"));
    BackgroundShell run(command());
    // Before its exec, the process does not run stretto yet.
    ASSERT_TRUE(eventually([&] { return holds_back(run.pid(), SIGUSR1); }));
    std::this_thread::sleep_for(moment);
    ::kill(run.pid(), SIGUSR1);
    EXPECT_TRUE(eventually([&] { return saved() || !run.running(); }));
    EXPECT_TRUE(run.running()) << "after " << moment.count() << " ms: " << run.err();
    EXPECT_TRUE(saved());
  }
}

TEST_F(EndlessRun, HangsAndIsEndedWhenARankIsStoppedAtItsStart) {
  std::list<BackgroundShell> runs;
  for (const int ranks : {1, 2}) {
    const std::string output = "output=" + workspace_.path(fmt::format("run{}", ranks));
    BackgroundShell& run = runs.emplace_back(
        workspace_.command("train", ranks, "training.max_steps=1000000 evaluate.every=never " + output) +
        " --hang-timeout 2");
    const std::string last = "RANK=" + std::to_string(ranks - 1);
    ASSERT_TRUE(eventually([&] { return !children_of(run.pid(), last).empty(); }));
    ::kill(children_of(run.pid(), last)[0], SIGSTOP);
  }
  for (BackgroundShell& run : runs) {
    const ShellResult result = run.wait();
    EXPECT_EQ(result.exit_code, 124);
    EXPECT_THAT(result.err, HasSubstr("stopped by a signal (state T) before it joined the job"));
  }
}

TEST(ClosedStreams, AreNotReusedForFilesOfTheRun) {
  const Workspace workspace;
  const ShellResult result =
      shell("(" + workspace.command("train", 2, "training.max_steps=3") + ") <&- >&- 2>&-");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(workspace.read("run/.lock"), "");
  EXPECT_THAT(workspace.read("run/logger_logs/training_0.log"), HasSubstr("step 3/3"));
}

TEST(Restarts, HappenAlthoughOutputIsNotRead) {
  const TempFolder folder;
  const ShellResult result =
      shell(stretto + " launch -N 2 --max-restarts 1 --log-dir " + folder.path().string() +
            " -- sh -c 'exit $((7 - 7 * TORCHELASTIC_RESTART_COUNT))' 2>/dev/full");
  EXPECT_EQ(result.exit_code, 0);
}

// Makes the pipes of rank 0's output as small as they can be, so that a few steps fill them.
void shrink_output_pipes(pid_t launcher) {
  ASSERT_TRUE(eventually([&] { return children_of(launcher, "RANK=0").size() == 1; }));
  const pid_t process = children_of(launcher, "RANK=0")[0];
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    const Fd pipe(::open(fmt::format("/proc/{}/fd/{}", process, stream).c_str(), O_WRONLY | O_NONBLOCK));
    EXPECT_TRUE(eventually([&] { return ::fcntl(pipe.get(), F_SETPIPE_SZ, 4096) == 4096; }));
  }
}

// The ranks write more than the terminal and their pipes buffer.
TEST_F(EndlessRun, ContinuesWhileItsTerminalIsNotRead) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the steps that fill the buffers take minutes";
#endif
  Terminal terminal(command("track.progress=line"));
  shrink_output_pipes(terminal.pid());
  ASSERT_TRUE(eventually([&] { return steps_done(); }));
  terminal.stop_reading();
  const int64_t enough = workspace_.recorded_lines("run") + 500;  // lines of some 100 bytes
  EXPECT_TRUE(eventually([&] { return workspace_.recorded_lines("run") > enough; }));
  EXPECT_TRUE(steps_go_on());
  ::kill(terminal.pid(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return log().find("the state is saved") != std::string::npos; }));
  EXPECT_TRUE(saved());
  terminal.go_on_reading();
  EXPECT_EQ(terminal.exit_code(), 0);
}

// Ctrl-Z and fg in a shell with job control.
TEST_F(EndlessRun, IsPausedByCtrlZAndContinuedByFg) {
  Terminal terminal("exec bash -c 'set -m; (" + command() +
                    "); echo suspended; read -r go; fg; echo \"ended $?\"'");
  ASSERT_TRUE(eventually([&] { return steps_done(); })) << terminal.text();
  terminal.type("\x1a");
  ASSERT_TRUE(terminal.shows("suspended")) << terminal.text();
  const int64_t before = workspace_.recorded_lines("run");
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(workspace_.recorded_lines("run"), before);
  terminal.type("go\n");
  EXPECT_TRUE(steps_go_on());
  terminal.type("\x03");
  EXPECT_TRUE(terminal.shows("ended 0")) << terminal.text();
  EXPECT_TRUE(saved());
  EXPECT_THAT(terminal.text(), HasSubstr("the job was paused for "));
}

// SIGSTOP cannot be forwarded: the ranks take all their steps, with more lines than a pipe holds, and the
// launcher logs them later.
TEST(StoppedLauncher, BlocksNoRankAndLosesNoLine) {
  const Workspace workspace;
  constexpr int steps = 200;
  const std::string settings =
      fmt::format("training.epochs={0} training.max_steps={0} evaluate.every=never", steps);
  workspace.train("undisturbed", 2, settings);
  BackgroundShell run(workspace.command("train", 2, settings) + " --collective-timeout 2");
  shrink_output_pipes(run.pid());
  ASSERT_TRUE(eventually([&] { return workspace.recorded_lines("run") > 0; })) << run.err();
  ::kill(run.pid(), SIGSTOP);
  const int64_t before = workspace.recorded_lines("run");
  EXPECT_TRUE(eventually([&] { return workspace.recorded_lines("run") >= steps; }));
  std::this_thread::sleep_for(2500ms);  // longer than the ranks' deadline
  ::kill(run.pid(), SIGCONT);
  const ShellResult result = run.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(workspace.losses("run"), workspace.losses("undisturbed"));
  const std::string log = workspace.read("run/logger_logs/training_0.log");
  EXPECT_GT(steps - before, 100);  // lines of some 100 bytes
  for (int step = 1; step <= steps; ++step)
    ASSERT_THAT(log, HasSubstr(fmt::format("step {}/{} ", step, steps)));
}

// `count` lines of 100 bytes.
std::string lines(int count) {
  return fmt::format("seq -f \"line %.0f {}\" 0 {}", std::string(90, 'x'), count - 1);
}

// The output is larger than the pipes; stretto/launch tests a full buffer of the launcher, too.
TEST(UnreadPipe, BlocksNeitherRanksNorSignals) {
  const TempFolder folder;
  const std::string logs = folder.path() / "logs", done = folder.path() / "done",
                    fifo = folder.path() / "fifo", reader = folder.path() / "reader";
  BackgroundShell run("mkfifo " + fifo + "; sleep 1000 < " + fifo + " & echo $! > " + reader + "; exec " +
                      stretto + " launch -N 1 --log-dir " + logs + " -- sh -c '" + lines(5000) + "; touch " +
                      done + "; exec sleep 1000' > " + fifo + " 2>&1");
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(done); }));
  EXPECT_TRUE(eventually(
      [&] { return read_file(logs + "/training_0.log").find("line 4999 ") != std::string::npos; }));
  ::kill(run.pid(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return children_of(run.pid(), "RANK=0").empty(); }));
  ::kill(run.pid(), SIGTERM);  // ends the wait for the reader
  EXPECT_EQ(run.wait().exit_code, 128 + SIGTERM);
  ::kill(std::stoi(read_file(reader)), SIGKILL);
}

// The output is larger than pipes and buffer.
TEST(SlowPipe, LosesNothing) {
  const ShellResult result =
      shell(stretto + " launch -N 1 -- sh -c '" + lines(100'000) + "' | (sleep 1; cat) | wc -l");
  EXPECT_EQ(result.out, "100000\n");
}

}  // namespace
}  // namespace stretto
