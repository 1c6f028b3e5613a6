#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace stretto::launch {

// Text for a descriptor that may stop accepting bytes (an unread pipe, a terminal after Ctrl-S), written on a thread of its
// own: no call blocks. The descriptor itself is used as it is, since other processes may share its flags.
//
// What is not yet written is buffered. Where more than `capacity` bytes are, and the reader has taken none for `patience`,
// it counts as stalled: states of live lines ("\r") that were overwritten since are dropped first, then the oldest lines,
// and a note with their number takes their place. A reader that is merely slow loses nothing if the caller heeds full().
class StreamWriter {
 public:
  struct Limits {
    size_t capacity = size_t{1} << 20;
    std::chrono::milliseconds patience{10'000};
  };

  // REQUIRES: `fd` stays open until the process ends.
  explicit StreamWriter(int fd);
  StreamWriter(int fd, Limits limits);
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;
  ~StreamWriter();  // gives a reader that is not stalled one second to take the rest

  void write(std::string_view bytes);

  bool full() const;     // the buffer is, and the reader still takes bytes: better write later
  bool stalled() const;  // bytes wait, and none was taken for `patience`
  bool broken() const;   // nobody will ever read: what is written is thrown away
  bool idle() const;     // everything is written

  // Waits for idle() or broken(), at most for `duration`.
  bool wait_idle(std::chrono::milliseconds duration) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object inside a write
};

// `text` without what carriage returns overwrite: of each line its last state.
std::string without_overwritten(std::string_view text);

}  // namespace stretto::launch
