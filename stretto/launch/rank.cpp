#include "stretto/launch/rank.h"

#include <fmt/format.h>
#include <signal.h>

#include "stretto/base/process.h"

namespace stretto::launch {

std::string name_of(const Rank& rank, bool with_host) {
  return fmt::format("rank {}{} (process {})", rank.rank, with_host ? " on " + host_name() : "",
                     rank.process.pid());
}

std::string describe_end(const Rank& rank, const std::string& name, const Ending& ending, LastLines which,
                         bool with_log) {
  std::string text = fmt::format("{} {}", name, ending.text());
  if (ending.signal == SIGKILL) text += "; the kernel does that when memory runs out";
  if (ending.signal == SIGBUS)
    text += "; a mapped file was truncated, or the disk or memory behind it is full";
  if (!rank.output.log().empty() && with_log && ending.start_error.empty())
    text += fmt::format("; its log is {}", rank.output.log().string());
  const std::string lines = rank.output.last_lines(which);
  const char* title = which == LastLines::all ? "its last lines" : "its last lines that are not shown above";
  if (!lines.empty()) text += fmt::format("\n  {}:\n{}", title, lines.substr(0, lines.size() - 1));
  return text;
}

}  // namespace stretto::launch
