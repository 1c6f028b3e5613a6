#include "stretto/base/terminal.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stretto/base/strings.h"

namespace stretto {

int progress_terminal() {
  if (::isatty(STDERR_FILENO) != 0) return STDERR_FILENO;
  const char* passed_on = std::getenv("STRETTO_TERMINAL");
  const int fd = passed_on == nullptr ? -1 : static_cast<int>(parse_int(passed_on).value_or(-1));
  return fd >= 0 && ::isatty(fd) != 0 ? fd : -1;
}

int progress_columns() {
  constexpr int usual = 80;
  winsize size{};
  return ::ioctl(progress_terminal(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string progress_cells(double done, int cells) {
  const int full = std::clamp(static_cast<int>(done * cells), 0, cells);
  return fmt::format("[{}{}]", std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(cells - full), '-'));
}

}  // namespace stretto
