#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "stretto/launch/output/shared_messages.h"
#include "stretto/launch/output/stream_writer.h"
#include "stretto/launch/process/signals.h"

namespace stretto::launch {

struct ConsoleOptions {
  bool shared =
      true;  // lines of other ranks may come; without them everything of rank 0 is passed on at once
  bool log_files = false;  // hold all that is shown, so that nobody need wait for a stalled reader
};

// The launcher's own standard output (stream 0) and standard error (stream 1), shared by the ranks and the launcher's own
// logger: rank 0's bytes are passed on unchanged, live progress lines ("\r") included; lines of others come between rank
// 0's, never inside one. On a terminal rank 0's unfinished line is cleared for that; elsewhere it is held back until it is
// finished. No function but finish() blocks, however long the reader does (see stream_writer.h). Thread-safe, but for messages.
class Console {
 public:
  explicit Console(ConsoleOptions options);
  ~Console();

  void pass(int stream, std::string_view bytes);  // of rank 0
  void line(int stream, std::string_view line);   // of another rank or of the launcher, without its end

  // A warning or an error that a rank logged (see SharedMessages). Of rank 0: it was passed.
  void message(int rank, std::string_view text);
  std::optional<SharedMessages::Clock::time_point> next_due() const;
  void show_due_messages();
  void show_messages();
  // Without what only other ranks said than those that `keep` accepts.
  void show_messages_of(const std::function<bool(int rank)>& keep);

  // Writes what is held back, and waits until all is written; not where its reader is gone or, with log files, stalled,
  // and no longer when a signal asks the launcher to end.
  void finish(const SignalGuard& signals);

  // The reader of a stream has gone: nothing more is written to it.
  bool broken(int stream) const { return writer(stream).broken(); }

  // Too much waits to be written, but the reader still takes it: output is to be left in the ranks' pipes for now.
  bool full(int stream) const { return writer(stream).full(); }

 private:
  struct Stream {
    std::shared_ptr<StreamWriter> writer;
    bool terminal;
    bool inside_line = false;  // on a terminal: rank 0 has left the cursor behind some text
    std::string held = {};
  };
  StreamWriter& writer(int stream) const { return *streams_[static_cast<size_t>(stream)].writer; }

  ConsoleOptions options_;
  SharedMessages messages_;  // the supervising thread's
  std::mutex mutex_;         // for what follows
  std::array<Stream, 2> streams_;
};

}  // namespace stretto::launch
