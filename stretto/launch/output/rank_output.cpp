#include "stretto/launch/output/rank_output.h"

#include <cerrno>

#include <sys/ioctl.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/log.h"

namespace stretto::launch {

namespace {

constexpr std::string_view logger_mark = "stretto: ";  // the prefix of the logger's warnings and errors

}  // namespace

RankOutput::RankOutput(int rank, pid_t process, Fd out, Fd err, std::filesystem::path log, bool hold,
                       Console& console)
    : rank_(rank),
      mark_(fmt::format("[rank {}] ", rank)),
      log_path_(std::move(log)),
      log_(log_path_.empty() ? nullptr : std::make_unique<HeldFile>(log_path_, hold)),
      console_(&console),
      streams_{Stream{std::move(out)}, Stream{std::move(err)}} {
  log_line(fmt::format("======== start of rank {} (process {}) ========", rank, process));
}

void RankOutput::read(int stream) { read_some(stream); }

void RankOutput::finish() {
  for (const int stream : {0, 1}) {
    int left = 0;
    ::ioctl(fd(stream), FIONREAD, &left);
    while (left > 0) {
      const size_t got = read_some(stream);
      if (got == 0) break;
      left -= static_cast<int>(got);
    }
    streams_[static_cast<size_t>(stream)].lines.finish(
        [&](std::string_view line) { take_line(stream, line); });
    streams_[static_cast<size_t>(stream)].fd.reset();
  }
}

bool RankOutput::must_wait(int stream) const {
  const bool shown = rank_ == 0 || !log_;
  return shown && console_->full(stream);
}

void RankOutput::close_unread() {
  if (log_) return;
  for (const int stream : {0, 1}) {
    if (console_->broken(stream)) streams_[static_cast<size_t>(stream)].fd.reset();
  }
  lost_reader_ = lost_reader_ || console_->broken(0);
}

// Returns the number of bytes that were read, 0 if none are available.
size_t RankOutput::read_some(int stream) {
  Stream& from = streams_[static_cast<size_t>(stream)];
  if (!from.fd) return 0;
  char chunk[size_t{64} << 10];
  const ssize_t got = ::read(from.fd.get(), chunk, sizeof chunk);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) {
    from.fd.reset();
    return 0;
  }
  const std::string_view bytes(chunk, static_cast<size_t>(got));
  if (rank_ == 0) console_->pass(stream, bytes);
  from.lines.feed(bytes, [&](std::string_view line) { take_line(stream, line); });
  return bytes.size();
}

void RankOutput::take_line(int stream, std::string_view line) {
  constexpr size_t kept = 10;
  const bool shown = show_line(stream, line);
  // Rank 0's lines are a run's own output: whoever redirects them knows where they are.
  last_.push_back({std::string(line), shown && (rank_ == 0 || stream == 1 || console_->has_one_reader())});
  if (last_.size() > kept) last_.pop_front();
}

bool RankOutput::show_line(int stream, std::string_view line) {
  const bool logged = log_line(line);
  const bool marked = line.starts_with(mark_);
  if (const auto message = message_in(stream, line)) {
    console_->message(rank_, *message);
  } else if (rank_ == 0) {
    return true;  // by read_some
  } else if (marked && (stream == 1 || !logged)) {
    console_->line(stream, line);
  } else if (!logged) {
    console_->line(stream, mark_ + std::string(line));
  } else {
    return false;
  }
  return true;
}

// The logger marks its messages with the rank as soon as it knows it.
std::optional<std::string_view> RankOutput::message_in(int stream, std::string_view line) const {
  if (rank_ != 0 && line.starts_with(mark_)) line.remove_prefix(mark_.size());
  if (stream != 1 || !line.starts_with(logger_mark)) return std::nullopt;
  return line;
}

// A full disk must not end the job: on an error the file is closed, and the rank's lines go to the console.
bool RankOutput::log_line(std::string_view line) {
  if (!log_) return false;
  try {
    log_->write(fmt::format("{} {}\n", log_time(), line));
    return true;
  } catch (const IoError& error) {
    close_log(error.what());
    return false;
  }
}

void RankOutput::release_log() {
  if (!log_) return;
  try {
    log_->release();
  } catch (const IoError& error) {
    close_log(error.what());
  }
}

void RankOutput::close_log(const std::string& reason) {
  log_.reset();
  log::warning("the log file of rank {} is closed, and its lines go to the console: {}", rank_, reason);
}

std::string RankOutput::last_lines(LastLines which) const {
  std::string text;
  for (const Line& line : last_)
    if (which == LastLines::all || !line.seen) text += fmt::format("  | {}\n", line.text);
  return text;
}

}  // namespace stretto::launch
