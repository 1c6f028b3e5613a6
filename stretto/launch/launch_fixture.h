#pragma once

#include <functional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/launch/launch.h"

// Test fixtures: real launchers with real ranks, which are shell scripts.
namespace stretto::launch {

inline LaunchOptions shell(const std::string& script, int ranks) {
  return {.command = {"sh", "-c", script}, .ranks = ranks, .pin = false};
}

// Waits until `condition` holds; returns false after a minute.
inline bool becomes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Whether the process runs; false for a zombie, too.
inline bool runs(pid_t pid) {
  if (::kill(pid, 0) != 0) return false;
  const std::string status = read_file(fmt::format("/proc/{}/stat", pid));
  return status.substr(status.rfind(')') + 2, 1) != "Z";
}

// Runs the launcher in a child process, whose standard streams are files.
class Launch : public ::testing::Test {
 protected:
  void start(
      const LaunchOptions& options, const std::function<void()>& before = [] {}) {
    launcher_ = ::fork();
    ASSERT_GE(launcher_, 0);
    if (launcher_ != 0) return;
    redirect("in", STDIN_FILENO, O_RDONLY | O_CREAT);
    redirect("out", STDOUT_FILENO, O_WRONLY | O_CREAT | O_APPEND);
    redirect("err", STDERR_FILENO, O_WRONLY | O_CREAT | O_APPEND);
    before();
    try {
      ::_exit(run(options));
    } catch (const Error& error) {
      fmt::print(stderr, "{}", error.what());
      ::_exit(error.exit_code());
    }
  }
  int exit_code() {
    int status = 0;
    while (::waitpid(launcher_, &status, 0) < 0 && errno == EINTR) {
    }
    launcher_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int launch(const LaunchOptions& options) {
    start(options);
    return exit_code();
  }
  std::string text(const std::string& name) { return read_file(folder_.path() / name); }
  // The content of a rank's log in logs/, without times and separators.
  std::string logged(const std::string& rank) {
    std::string kept;
    const std::string all = text("logs/training_" + rank + ".log");
    for (const std::string_view line : split(all, '\n')) {
      constexpr size_t time = std::string_view("2026-01-31 12:00:00.123 ").size();
      if (line.size() >= time && !line.substr(time).starts_with("========"))
        kept.append(line.substr(time)).append("\n");
    }
    return kept;
  }
  bool has(const std::string& name) { return std::filesystem::exists(folder_.path() / name); }
  std::string here(const std::string& name) { return (folder_.path() / name).string(); }
  pid_t number_in(const std::string& name) {
    EXPECT_TRUE(becomes_true([&] { return has(name) && text(name).ends_with('\n'); })) << name;
    return static_cast<pid_t>(parse_int(trim(text(name))).value_or(0));
  }
  void TearDown() override {
    if (launcher_ > 0) ::kill(launcher_, SIGKILL);
  }

  TempFolder folder_;
  pid_t launcher_ = -1;

 private:
  void redirect(const std::string& name, int to, int flags) {
    const int fd = ::open(here(name).c_str(), flags, 0600);
    ::dup2(fd, to);
    ::close(fd);
  }
};

}  // namespace stretto::launch
