#pragma once

#include <array>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>

#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/launch/output/console.h"
#include "stretto/launch/output/lines.h"

namespace stretto::launch {

// Where a rank's standard output (stream 0) and standard error (stream 1) go: line by line, each behind the time, into its
// log file, if there is one; rank 0's also to the console, unchanged. Of the others the console gets, with a log file,
// only the lines on standard error that begin with "[rank <n>] ", as stretto's logger writes warnings and errors; without
// one, every line, with that mark in front.
class RankOutput {
 public:
  // `log`: the file's path, or empty. Separates what `process` (its number) writes from what is there already. Throws
  // IoError where it cannot be written.
  RankOutput(int rank, pid_t process, Fd out, Fd err, std::filesystem::path log, Console& console);

  int fd(int stream) const { return streams_[static_cast<size_t>(stream)].fd.get(); }  // -1 once at its end
  void read(int stream);  // what is there now; never blocks
  void finish();          // all that is left, after the rank's end

  // The console is to take what it has before more is read.
  bool must_wait(int stream) const;

  // Closes the streams that lead nowhere, as there is no log file and the console's reader has gone: the rank's next write
  // then fails, as it would without a launcher.
  void close_unread();

  const std::filesystem::path& log() const { return log_path_; }
  std::string last_lines() const;  // the last ten, indented, each with its newline

 private:
  struct Stream {
    Fd fd;
    Lines lines = {};
  };
  bool read_some(int stream);
  void take_line(int stream, std::string_view line);
  bool is_message(int stream, std::string_view line) const;
  bool log_line(std::string_view line);

  int rank_;
  std::string mark_;
  std::filesystem::path log_path_;
  std::unique_ptr<AppendFile> log_;
  Console* console_;
  std::array<Stream, 2> streams_;
  std::deque<std::string> last_;
};

}  // namespace stretto::launch
