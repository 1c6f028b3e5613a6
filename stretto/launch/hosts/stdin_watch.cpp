#include "stretto/launch/hosts/stdin_watch.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <unistd.h>

namespace stretto::launch {
namespace {

void hang_up() {
  struct sigaction action {};
  ::sigaction(SIGHUP, nullptr, &action);
  ::kill(::getpid(), action.sa_handler == SIG_IGN ? SIGTERM : SIGHUP);
}

}  // namespace

StdinWatch::StdinWatch() {
  thread_ = std::thread([wake = wake_.fd()] {
    while (true) {
      std::array<pollfd, 2> watched = {{{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}}};
      ::poll(watched.data(), watched.size(), -1);
      if (watched[1].revents != 0) return;
      if (watched[0].revents == 0) continue;
      std::array<char, 4096> ignored;
      const ssize_t got = ::read(STDIN_FILENO, ignored.data(), ignored.size());
      if (got > 0 || (got < 0 && errno == EINTR)) continue;
      return hang_up();
    }
  });
}

StdinWatch::~StdinWatch() {
  wake_.wake();
  thread_.join();
}

}  // namespace stretto::launch
