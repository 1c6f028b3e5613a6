#include "stretto/base/stream_writer.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stretto/base/strings.h"

namespace stretto {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t piece_bytes = 4096;  // per system call
constexpr size_t overshoot = 16;      // times the capacity, if the caller ignores full()

// Returns false on a permanent error.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd watched{fd, POLLOUT, 0};
      ::poll(&watched, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Returns the number of bytes that the descriptor took without blocking; 0 if the system does not support
// that.
size_t write_at_once(int fd, std::string_view bytes) {
  const iovec piece{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  const ssize_t written = ::pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
  return written > 0 ? static_cast<size_t>(written) : 0;
}

}  // namespace

struct StreamWriter::State {
  State(int to, Limits of) : fd(to), limits(of) {}

  const int fd;
  const Limits limits;
  std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;
  size_t begin = 0;      // of the unwritten part of `waiting`
  bool writing = false;  // the thread is in write()
  bool broken = false;
  bool stop = false;
  bool line_start = true;  // the last byte taken was a newline
  int64_t dropped_lines = 0, dropped_bytes = 0;
  Clock::time_point progress = Clock::now();

  size_t size() const { return waiting.size() - begin; }
  bool idle() const { return size() == 0 && dropped_bytes == 0 && !writing; }
  bool stalled() const { return !idle() && !broken && Clock::now() - progress > limits.patience; }

  void shrink() {
    waiting = without_overwritten(std::string_view(waiting).substr(begin));
    begin = 0;
    if (waiting.size() <= limits.capacity / 2) return;
    const size_t kept = waiting.size() - limits.capacity / 2;
    const size_t end = waiting.find('\n', kept);
    const size_t dropped = end == std::string::npos ? kept : end + 1;
    dropped_bytes += static_cast<int64_t>(dropped);
    dropped_lines += std::count(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(dropped), '\n');
    waiting.erase(0, dropped);
  }

  std::string note() {
    const std::string text =
        fmt::format("{}stretto: warning: {} lines of output ({}) were dropped here: nothing read them\n",
                    line_start ? "" : "\n", dropped_lines, human_bytes(static_cast<double>(dropped_bytes)));
    dropped_lines = dropped_bytes = 0;
    return text;
  }

  std::string next_piece() {
    if (dropped_bytes > 0) return note();
    std::string piece = waiting.substr(begin, piece_bytes);
    begin += piece.size();
    if (begin >= limits.capacity || begin == waiting.size()) {
      waiting.erase(0, begin);
      begin = 0;
    }
    return piece;
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stop || !idle(); });
      if (stop) return;
      const std::string piece = next_piece();
      line_start = piece.back() == '\n';
      writing = true;
      lock.unlock();
      const bool written = write_all(fd, piece);
      lock.lock();
      writing = false;
      progress = Clock::now();
      if (!written) {
        broken = true;
        waiting.clear();
        begin = 0;
        dropped_bytes = dropped_lines = 0;
      }
      changed.notify_all();
    }
  }
};

StreamWriter::StreamWriter(int fd) : StreamWriter(fd, Limits{}) {}

StreamWriter::StreamWriter(int fd, Limits limits) : state_(std::make_shared<State>(fd, limits)) {
  // All signals are blocked in the thread: a broken pipe is an error, and other threads handle the rest.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_] { state->run(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StreamWriter::~StreamWriter() {
  finish();
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

void StreamWriter::write(std::string_view bytes) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (bytes.empty() || state.broken) return;
  if (state.idle()) {
    const size_t written = state.limits.reader_returns ? write_at_once(state.fd, bytes) : 0;
    if (written > 0) state.line_start = bytes[written - 1] == '\n';
    bytes.remove_prefix(written);
    if (bytes.empty()) return;
    state.progress = Clock::now();
  }
  state.waiting += bytes;
  const size_t limit = state.limits.capacity * (state.stalled() ? 1 : overshoot);
  if (state.size() > limit) state.shrink();
  state.changed.notify_all();
}

bool StreamWriter::full() const {
  const std::lock_guard lock(state_->mutex);
  return state_->size() > state_->limits.capacity && !state_->stalled();
}

bool StreamWriter::stalled() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stalled();
}

bool StreamWriter::broken() const {
  const std::lock_guard lock(state_->mutex);
  return state_->broken;
}

bool StreamWriter::idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle();
}

void StreamWriter::finish() const {
  if (state_->limits.reader_returns) {
    while (!wait_idle(std::chrono::minutes(1))) {
    }
  } else if (!stalled()) {
    wait_idle(std::chrono::seconds(1));
  }
}

bool StreamWriter::wait_idle(std::chrono::milliseconds duration) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, duration, [this] { return state_->idle() || state_->broken; });
}

std::string without_overwritten(std::string_view text) {
  std::string kept;
  size_t line = 0;  // where the last line of `kept` begins
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n') kept.resize(line);
    kept += text[i];
    if (text[i] == '\n') line = kept.size();
  }
  return kept;
}

}  // namespace stretto
