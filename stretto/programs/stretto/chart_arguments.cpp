#include "stretto/programs/stretto/chart_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stretto/base/files.h"
#include "stretto/base/path_error.h"
#include "stretto/programs/arguments/checks.h"

namespace stretto::cli {
namespace {

bool has_value(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Whether the locale is UTF-8. Without a locale setting, UTF-8 is assumed for pipes and files.
bool shows_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!has_value(variable)) continue;
    const std::string_view name = std::getenv(variable);
    return name.find("UTF-8") != std::string_view::npos || name.find("utf8") != std::string_view::npos ||
           name.find("UTF8") != std::string_view::npos;
  }
  return true;
}

}  // namespace

report::TextStyle output_style() {
  constexpr int usual = 80, narrowest = 40, widest = 200;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {.columns = std::clamp(known ? int{size.ws_col} : usual, narrowest, widest),
          .ascii = !shows_utf8(),
          .color = ::isatty(STDOUT_FILENO) != 0 && !has_value("NO_COLOR")};
}

void add_chart_arguments(CLI::App& verb, ChartArguments& arguments) {
  verb.add_option("--svg", arguments.svg, "Write an SVG file instead of printing")->type_name("FILE");
  verb.add_flag("--ascii", arguments.ascii, "Print ASCII characters only (default: by the locale)");
  verb.add_option("--rows", arguments.rows, "Height of the plot in lines (default: 14; 4 to 200)")
      ->type_name("N")
      ->check(arguments::whole_number_from(4, 200));
}

void show_chart(const report::Chart& chart, const ChartArguments& arguments) {
  if (!arguments.svg.empty()) {
    require_file_path(arguments.svg);
    write_file_atomic(arguments.svg, report::svg_chart(chart));
    fmt::print("{}\n", arguments.svg.string());
    return;
  }
  report::TextStyle style = output_style();
  style.rows = arguments.rows;
  style.ascii |= arguments.ascii;
  fmt::print("{}", report::text_chart(chart, style));
}

}  // namespace stretto::cli
