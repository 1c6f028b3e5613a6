#include <array>
#include <memory>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/chart_arguments.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/top_screen.h"

namespace stretto::cli {
namespace {

struct TopArguments {
  std::filesystem::path run;
  bool once = false, ascii = false;
  int interval = 0;  // s; 0: 1 on a terminal, else 10
};

// Switches to the terminal's alternate screen, without echo and cursor, for the lifetime of this object.
class FullScreen {
 public:
  FullScreen() {
    has_input_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_input_) {
      termios quiet = before_;
      quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    }
    fmt::print("\x1b[?1049h\x1b[?25l");
  }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;
  ~FullScreen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    if (has_input_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  void show(const std::string& text) {
    fmt::print("\x1b[H");
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      fmt::print("{}\x1b[K\r\n", text.substr(begin, end - begin));
      begin = end + 1;
    }
    fmt::print("\x1b[J");
    std::fflush(stdout);
  }

 private:
  bool has_input_ = false;
  termios before_{};
};

int output_rows() {
  constexpr int usual = 24;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : usual;
}

report::TextStyle style_of(const TopArguments& arguments) {
  report::TextStyle style = output_style();
  style.ascii |= arguments.ascii;
  return style;
}

// Waits; returns true if the user quits by q, Ctrl-C or a signal.
bool wait_for_end(int seconds, const sigset_t& unblocked) {
  std::array<pollfd, 1> input = {pollfd{STDIN_FILENO, POLLIN, 0}};
  const timespec time{seconds, 0};
  const int ready = ::ppoll(input.data(), ::isatty(STDIN_FILENO) != 0 ? 1 : 0, &time, &unblocked);
  if (ready < 0) return true;
  char key = 0;
  return ready > 0 && (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 3);
}

// Signals only interrupt wait_for_end, so that the terminal is always restored.
sigset_t catch_signals() {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaction(signal, &nothing, nullptr);
    ::sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  return before;
}

void watch_on_terminal(const TopArguments& arguments) {
  const sigset_t unblocked = catch_signals();
  std::string last;
  {
    FullScreen screen;
    while (true) {
      last = report::top_screen(arguments.run, style_of(arguments), output_rows() - 1, seconds_since_1970());
      screen.show(last);
      if (report::is_over(report::read_status(arguments.run), arguments.run, seconds_since_1970())) break;
      if (wait_for_end(arguments.interval > 0 ? arguments.interval : 1, unblocked)) return;
    }
  }
  fmt::print("{}", last);  // the last state of an ended run stays visible
}

void watch_in_lines(const TopArguments& arguments) {
  const sigset_t unblocked = catch_signals();
  while (true) {
    const nlohmann::json status = report::read_status(arguments.run);
    fmt::print("{}\n", report::top_line(status, seconds_since_1970()));
    arguments::flush_standard_output();
    if (report::is_over(status, arguments.run, seconds_since_1970())) return;
    if (wait_for_end(arguments.interval > 0 ? arguments.interval : 10, unblocked)) return;
  }
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("top", "Watch a running job until it ends (q quits)");
  auto arguments = std::make_shared<TopArguments>();
  verb->add_option("run", arguments->run, "The output folder of the run")->required()->type_name("FOLDER");
  verb->add_flag("--once", arguments->once, "Print the state and exit");
  verb->add_flag("--ascii", arguments->ascii, "Print ASCII characters only (default: by the locale)");
  verb->add_option("--interval", arguments->interval,
                   "Seconds between two updates (default: 1, or 10 if standard output is no terminal)")
      ->type_name("SECONDS")
      ->check(arguments::whole_number_from(1, 3600));
  verb->callback([arguments, &exit_code] {
    exit_code = 0;
    if (arguments->once) {
      fmt::print("{}", report::top_screen(arguments->run, style_of(*arguments), output_rows(),
                                          seconds_since_1970()));
    } else if (::isatty(STDOUT_FILENO) != 0) {
      watch_on_terminal(*arguments);
    } else {
      watch_in_lines(*arguments);
    }
  });
}

}  // namespace stretto::cli
