#include "stretto/programs/arguments/help_format.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

namespace stretto::arguments {
namespace {

constexpr std::string_view several_hosts = "SEVERAL HOSTS";

// The names of the options of the groups "SEVERAL HOSTS", wrapped to lines.
std::string names_for_hosts(const CLI::App& app) {
  std::string text, line;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().starts_with(several_hosts)) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (line.size() + name.size() > 75) text += std::exchange(line, "") + "\n";
    line += (line.empty() ? "  " : " ") + name;
  }
  return text + line + "\n";
}

}  // namespace

std::string HelpFormat::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return CLI::Formatter::make_option_name(option, is_positional);
  const std::vector<std::string>& long_names = option->get_lnames();
  std::vector<std::string> shown;
  for (const std::string& name : option->get_snames()) shown.push_back("-" + name);
  for (const std::string& name : long_names) {
    std::string dashed = name;
    std::ranges::replace(dashed, '_', '-');
    if (dashed == name || std::ranges::find(long_names, dashed) == long_names.end())
      shown.push_back("--" + name);
  }
  return fmt::format("{}", fmt::join(shown, ","));
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  while (text.ends_with("\n\n")) text.pop_back();
  const std::string heading = "\n" + std::string(several_hosts);
  const size_t first = text.find(heading);
  const CLI::Option* all = app->get_help_all_ptr();
  if (mode == CLI::AppFormatMode::All || all == nullptr || all->count() > 0 || first == std::string::npos)
    return text;
  const size_t end = std::min(text.size(), text.find("\n\n", text.rfind(heading) + 1));
  return text.substr(0, first) + heading + " (--help-all describes these):\n" + names_for_hosts(*app) +
         text.substr(std::min(text.size(), end + 1));
}

}  // namespace stretto::arguments
