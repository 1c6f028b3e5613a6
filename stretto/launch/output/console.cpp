#include "stretto/launch/output/console.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/log.h"

namespace stretto::launch {
namespace {

bool same_file(int a, int b) {
  using Status = struct stat;
  Status first{}, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

Console::Console(ConsoleOptions options) : options_(options) {
  const auto out = std::make_shared<StreamWriter>(STDOUT_FILENO, options.limits);
  // One writer for both streams if they are the same file, so that their order is kept.
  const auto err = same_file(STDOUT_FILENO, STDERR_FILENO)
                       ? out
                       : std::make_shared<StreamWriter>(STDERR_FILENO, options.limits);
  streams_ = {Stream{out, ::isatty(STDOUT_FILENO) == 1}, Stream{err, ::isatty(STDERR_FILENO) == 1}};
  log::set_output([this](std::string_view text) { line(1, text); });
}

Console::~Console() { log::set_output({}); }

void Console::pass(int stream, std::string_view bytes) {
  constexpr size_t longest_held = size_t{64} << 10;
  const std::lock_guard lock(mutex_);
  Stream& to = streams_[static_cast<size_t>(stream)];
  if (bytes.empty()) return;
  if (to.terminal || !options_.shared) {
    to.writer->write(bytes);
    to.inside_line = bytes.back() != '\n';
    return;
  }
  to.held += bytes;
  const size_t end = to.held.rfind('\n');
  const size_t ready = end != std::string::npos        ? end + 1
                       : to.held.size() > longest_held ? to.held.size()
                                                       : 0;
  to.writer->write(std::string_view(to.held).substr(0, ready));
  to.held.erase(0, ready);
}

void Console::line(int stream, std::string_view line) {
  const std::lock_guard lock(mutex_);
  Stream& to = streams_[static_cast<size_t>(stream)];
  const bool live = streams_[0].inside_line || streams_[1].inside_line;
  to.writer->write(fmt::format("{}{}\n", to.terminal && live ? "\r\033[K" : "", line));
  for (Stream& each : streams_) each.inside_line = false;
}

void Console::message(int rank, std::string_view text) {
  const auto now = SharedMessages::Clock::now();
  rank == 0 ? messages_.shown_by_rank_0(text, now) : messages_.add(rank, text, now);
}

std::optional<SharedMessages::Clock::time_point> Console::next_due() const { return messages_.next_due(); }

void Console::show_due_messages() {
  for (const std::string& text : messages_.take_due(SharedMessages::Clock::now())) line(1, text);
}

void Console::show_messages() {
  for (const std::string& text : messages_.take_all(SharedMessages::Clock::now())) line(1, text);
}

void Console::show_messages_of(const std::function<bool(int rank)>& keep) {
  messages_.drop_unless(keep);
  show_messages();
}

void Console::finish(const SignalGuard& signals) {
  show_messages();
  {
    const std::lock_guard lock(mutex_);
    for (Stream& stream : streams_) {
      stream.writer->write(stream.held);
      stream.held.clear();
    }
  }
  for (const Stream& stream : streams_) {
    while (!stream.writer->wait_idle(std::chrono::milliseconds(20))) {
      if (options_.log_files && stream.writer->stalled()) break;
      const auto signal = signals.next();
      if (signal && asks_to_end(*signal)) return;
      if (signal == SIGTSTP) signals.stop_this_process();
    }
  }
}

}  // namespace stretto::launch
