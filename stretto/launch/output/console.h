#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "stretto/base/stream_writer.h"
#include "stretto/launch/output/shared_messages.h"
#include "stretto/launch/process/signals.h"

namespace stretto::launch {

struct ConsoleOptions {
  bool shared = true;      // there are other ranks; without them all output of rank 0 is forwarded at once
  bool log_files = false;  // contain all output, so that finish() need not wait for a stalled reader
  StreamWriter::Limits limits = {};  // of each of the two streams
};

// The launcher's standard output (stream 0) and standard error (stream 1), shared by the ranks and the launcher's own
// logger. Rank 0's bytes are forwarded unchanged, live progress lines ("\r") included; lines of others come between
// rank 0's lines, never inside one: on a terminal an unfinished line of rank 0 is cleared first, elsewhere it is held
// back until it is finished. Only finish() blocks (see stream_writer.h). Thread-safe, except for messages.
class Console {
 public:
  explicit Console(ConsoleOptions options);
  ~Console();

  void pass(int stream, std::string_view bytes);  // of rank 0
  void line(int stream, std::string_view line);   // of another rank or of the launcher, without its end

  // A warning or error that a rank logged (see SharedMessages); rank 0's has been shown by pass().
  void message(int rank, std::string_view text);
  std::optional<SharedMessages::Clock::time_point> next_due() const;
  void show_due_messages();
  void show_messages();
  // Without messages that no rank accepted by `keep` logged.
  void show_messages_of(const std::function<bool(int rank)>& keep);

  // Writes what is held back and waits until all is written, unless the reader has exited or, with log files, is
  // stalled. A signal that asks the launcher to end ends the wait.
  void finish(const SignalGuard& signals);

  // The reader of a stream has exited: nothing more is written to it.
  bool broken(int stream) const { return writer(stream).broken(); }

  // The buffer is full and its reader slow: leave the ranks' output in their pipes for now.
  bool full(int stream) const { return writer(stream).full(); }

 private:
  struct Stream {
    std::shared_ptr<StreamWriter> writer;
    bool terminal;
    bool inside_line = false;  // on a terminal: the cursor stands behind an unfinished line of rank 0
    std::string held = {};
  };
  StreamWriter& writer(int stream) const { return *streams_[static_cast<size_t>(stream)].writer; }

  ConsoleOptions options_;
  SharedMessages messages_;  // used by the supervising thread only
  std::mutex mutex_;         // guards what follows
  std::array<Stream, 2> streams_;
};

}  // namespace stretto::launch
