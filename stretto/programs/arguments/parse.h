#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace stretto::arguments {

// Parses the command line into `app` and runs the callbacks of its verbs. Returns the exit code if the
// program must exit: 0 after --help or --version, 2 after a usage error, which is reported on stderr; else
// nullopt. Call it once for an app, to which it adds checks that refer to argv.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv);

// The message for a usage error, with the closest known option.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace stretto::arguments
