#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace stretto {

// Writes to a descriptor that may stop accepting bytes (an unread pipe, a terminal after Ctrl-S), on a
// separate thread: no call blocks. O_NONBLOCK is not used, since other processes may share the open file.
//
// A reader is stalled if bytes are waiting and it has taken none for `patience`. If then more than `capacity`
// bytes wait, overwritten states of live lines ("\r") are dropped first, then the oldest lines, which are
// replaced by a note with their number. A slow reader loses nothing if the caller does not write while
// full().
class StreamWriter {
 public:
  struct Limits {
    size_t capacity = size_t{1} << 20;
    std::chrono::milliseconds patience{10'000};
    // The reader may stop for a while, but eventually reads everything. finish() waits for it, and bytes that
    // a pipe accepts at once are written by the caller's thread (Linux 6.5), so that it is not lost if this
    // process crashes. REQUIRES: SIGPIPE is ignored.
    bool reader_returns = false;
  };

  // REQUIRES: `fd` stays open until the process ends.
  explicit StreamWriter(int fd);
  StreamWriter(int fd, Limits limits);
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;
  ~StreamWriter();  // after finish()

  void write(std::string_view bytes);

  bool full() const;     // more than `capacity` bytes wait for a reader that is not stalled
  bool stalled() const;  // bytes wait, and none were taken for `patience`
  bool broken() const;   // writing failed, or the reader has exited: output is discarded
  bool idle() const;     // all is written

  // Waits until all is written: up to one second for a reader that is not stalled, without limit for one that
  // returns.
  void finish() const;

  // Waits for idle() or broken(), at most for `duration`.
  bool wait_idle(std::chrono::milliseconds duration) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may be blocked in write() for longer
};

// `text` without text that a carriage return overwrites: the last state of each line.
std::string without_overwritten(std::string_view text);

}  // namespace stretto
