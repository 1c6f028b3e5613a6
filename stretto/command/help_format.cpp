#include "stretto/command/help_format.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace stretto::command {

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
  return text;
}

}  // namespace stretto::command
