#include "stretto/launch/console.h"

#include <cerrno>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace stretto::launch {

Console::Console(bool shared)
    : shared_(shared),
      streams_{Stream{STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1},
               Stream{STDERR_FILENO, ::isatty(STDERR_FILENO) == 1}} {}

void Console::pass(int stream, std::string_view bytes) {
  constexpr size_t longest_held = size_t{64} << 10;
  Stream& to = streams_[static_cast<size_t>(stream)];
  if (bytes.empty()) return;
  if (to.terminal || !shared_) {
    write(to, bytes);
    to.inside_line = bytes.back() != '\n';
    return;
  }
  to.held += bytes;
  const size_t end = to.held.rfind('\n');
  const size_t ready = end != std::string::npos        ? end + 1
                       : to.held.size() > longest_held ? to.held.size()
                                                       : 0;
  write(to, std::string_view(to.held).substr(0, ready));
  to.held.erase(0, ready);
}

void Console::line(int stream, std::string_view line) {
  Stream& to = streams_[static_cast<size_t>(stream)];
  const bool live = streams_[0].inside_line || streams_[1].inside_line;
  write(to, fmt::format("{}{}\n", to.terminal && live ? "\r\033[K" : "", line));
  for (Stream& each : streams_) each.inside_line = false;
}

void Console::finish() {
  for (Stream& stream : streams_) {
    write(stream, stream.held);
    stream.held.clear();
  }
}

void Console::write(Stream& stream, std::string_view bytes) {
  while (!bytes.empty() && !stream.broken) {
    const ssize_t written = ::write(stream.fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd watched{stream.fd, POLLOUT, 0};
      ::poll(&watched, 1, -1);
    } else if (errno != EINTR) {
      stream.broken = true;
    }
  }
}

}  // namespace stretto::launch
