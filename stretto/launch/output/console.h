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
  bool shared = true;      // there are other ranks; otherwise output of rank 0 is forwarded at once
  bool log_files = false;  // the ranks have log files, so that finish() need not wait for a stalled reader
  StreamWriter::Limits limits = {};  // of each of the two streams
};

// The launcher's standard output (stream 0) and standard error (stream 1), shared by the ranks and the
// launcher's own logger. Rank 0's bytes are forwarded unchanged, live progress lines ("\r") included; other
// lines appear between rank 0's lines, never inside one: on a terminal an unfinished line of rank 0 is
// cleared first, elsewhere it is held back until it is complete. Only finish() blocks (see stream_writer.h).
// Thread-safe, except for messages.
class Console {
 public:
  explicit Console(ConsoleOptions options);
  ~Console();

  void pass(int stream, std::string_view bytes);  // of rank 0
  void line(int stream, std::string_view line);   // of another rank or of the launcher, without its end

  // Takes a warning or error that a rank logged (see SharedMessages); pass() has already shown that of rank
  // 0.
  void message(int rank, std::string_view text);
  std::optional<SharedMessages::Clock::time_point> next_due() const;
  void show_due_messages();
  void show_messages();
  // Drops messages that only ranks rejected by `keep` have logged.
  void show_messages_of(const std::function<bool(int rank)>& keep);

  // Writes held lines and waits until everything is written, unless the reader has exited or, with log files,
  // is stalled. A signal that asks the launcher to end also ends the wait.
  void finish(const SignalGuard& signals);

  // Whether the reader of a stream has exited; nothing more is written to it.
  bool broken(int stream) const { return writer(stream).broken(); }

  // Whether both streams are one file, such as a terminal.
  bool has_one_reader() const { return streams_[0].writer == streams_[1].writer; }

  // Whether the buffer is full because its reader is slow, so that the ranks' output should stay in their
  // pipes for now.
  bool full(int stream) const { return writer(stream).full(); }

 private:
  struct Stream {
    std::shared_ptr<StreamWriter> writer;
    bool terminal;
    bool inside_line = false;  // on a terminal: the cursor is at the end of an unfinished line of rank 0
    std::string held = {};
  };
  StreamWriter& writer(int stream) const { return *streams_[static_cast<size_t>(stream)].writer; }

  ConsoleOptions options_;
  SharedMessages messages_;  // used by the supervising thread only
  std::mutex mutex_;         // guards what follows
  std::array<Stream, 2> streams_;
};

}  // namespace stretto::launch
