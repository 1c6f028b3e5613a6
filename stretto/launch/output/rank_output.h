#pragma once

#include <array>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/fd.h"
#include "stretto/base/held_file.h"
#include "stretto/launch/output/console.h"
#include "stretto/launch/output/lines.h"

namespace stretto::launch {

// Which of a rank's last lines a report of its end quotes: all, or those that the reader of the launcher's
// standard error has not seen.
enum class LastLines { all, unseen };

// Forwards a rank's standard output (stream 0) and standard error (stream 1): to its log file, if there is
// one, line by line with time stamps; and to the console. The console gets rank 0's output unchanged, and all
// lines of the other ranks with the prefix "[rank <n>] "; if there is a log file, only lines of standard
// error that already have this prefix. Warnings and errors of stretto's logger, with or without it, are shown
// once for all ranks (shared_messages.h).
class RankOutput {
 public:
  // `log`: the path of the log file, or empty; a separator line with the number of `process` is appended.
  // With `hold` the file is not changed before release_log() (held_file.h). Throws IoError if the file cannot
  // be opened.
  RankOutput(int rank, pid_t process, Fd out, Fd err, std::filesystem::path log, bool hold, Console& console);

  int fd(int stream) const { return streams_[static_cast<size_t>(stream)].fd.get(); }  // -1 after its end
  void read(int stream);  // reads the available bytes; never blocks
  void finish();          // reads the rank's remaining output, but not that of a process that outlives it

  // Whether the console must catch up before more is read.
  bool must_wait(int stream) const;

  void release_log();

  // Without a log file, closes the streams whose console reader has exited: the rank's next write then fails,
  // as it would without a launcher.
  void close_unread();

  // Whether close_unread() has closed standard output.
  bool lost_reader() const { return lost_reader_; }

  const std::filesystem::path& log() const { return log_path_; }
  std::string last_lines(LastLines which) const;  // of the last ten lines, indented

 private:
  struct Stream {
    Fd fd;
    Lines lines = {};
  };
  size_t read_some(int stream);
  void take_line(int stream, std::string_view line);
  bool show_line(int stream, std::string_view line);  // returns whether the console has it
  // A warning or error of the logger, without the rank's mark.
  std::optional<std::string_view> message_in(int stream, std::string_view line) const;
  bool log_line(std::string_view line);
  void close_log(const std::string& reason);

  int rank_;
  std::string mark_;
  std::filesystem::path log_path_;
  std::unique_ptr<HeldFile> log_;
  Console* console_;
  bool lost_reader_ = false;
  std::array<Stream, 2> streams_;
  struct Line {
    std::string text;
    bool seen;
  };
  std::deque<Line> last_;
};

}  // namespace stretto::launch
