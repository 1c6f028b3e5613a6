#pragma once

#include <CLI/CLI.hpp>

namespace stretto::arguments {

// The format of --help. Of spellings that differ in dashes and underscores only (--max-restarts,
// --max_restarts), it shows the one with dashes.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(31); }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  // Separates groups by one blank line. If there is --help-all, --help only names the options of groups that
  // begin with "SEVERAL HOSTS".
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace stretto::arguments
