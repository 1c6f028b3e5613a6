#include "stretto/launch/rank_output.h"

#include <cerrno>

#include "stretto/base/error.h"
#include "stretto/base/log.h"

namespace stretto::launch {

RankOutput::RankOutput(int rank, Fd out, Fd err, std::filesystem::path log, Console& console)
    : rank_(rank),
      mark_(fmt::format("[rank {}] ", rank)),
      log_path_(std::move(log)),
      log_(log_path_.empty() ? nullptr : std::make_unique<AppendFile>(log_path_)),
      console_(&console),
      streams_{Stream{std::move(out)}, Stream{std::move(err)}} {}

void RankOutput::read(int stream) { read_some(stream); }

void RankOutput::finish() {
  for (const int stream : {0, 1}) {
    while (read_some(stream)) {
    }
    streams_[static_cast<size_t>(stream)].lines.finish(
        [&](std::string_view line) { take_line(stream, line); });
    streams_[static_cast<size_t>(stream)].fd.reset();
  }
}

bool RankOutput::read_some(int stream) {
  Stream& from = streams_[static_cast<size_t>(stream)];
  if (!from.fd) return false;
  char chunk[size_t{64} << 10];
  const ssize_t got = ::read(from.fd.get(), chunk, sizeof chunk);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    from.fd.reset();
    return false;
  }
  const std::string_view bytes(chunk, static_cast<size_t>(got));
  if (rank_ == 0) console_->pass(stream, bytes);
  from.lines.feed(bytes, [&](std::string_view line) { take_line(stream, line); });
  // Nobody reads it any more: let the rank know, as it would without a launcher.
  if (!log_ && console_->broken(stream)) from.fd.reset();
  return static_cast<bool>(from.fd);
}

void RankOutput::take_line(int stream, std::string_view line) {
  constexpr size_t kept = 10;
  last_.emplace_back(line);
  if (last_.size() > kept) last_.pop_front();

  const bool logged = log_line(line);
  if (rank_ == 0) return;
  const bool marked = line.starts_with(mark_);
  if (marked && (stream == 1 || !logged)) {
    console_->line(stream, line);
  } else if (!logged) {
    console_->line(stream, mark_ + std::string(line));
  }
}

// A full disk must not end the training: the file is given up, and the rank's lines go to the console.
bool RankOutput::log_line(std::string_view line) {
  if (!log_) return false;
  try {
    log_->write(fmt::format("{}\n", line));
    return true;
  } catch (const IoError& error) {
    log_.reset();
    log::warning("rank {} keeps no log file from here on: {}", rank_, error.what());
    return false;
  }
}

std::string RankOutput::last_lines() const {
  std::string text;
  for (const std::string& line : last_) text += fmt::format("  | {}\n", line);
  return text;
}

}  // namespace stretto::launch
