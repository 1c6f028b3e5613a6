#pragma once

#include <CLI/CLI.hpp>

namespace stretto::cli {

// Throws ConfigError, with the closest verb, if the first argument is neither an option nor a verb of `app`,
// or if there is none. REQUIRES: the verbs are added, and no option of `app` itself takes a value.
void require_known_verb(const CLI::App& app, int argc, const char* const* argv);

}  // namespace stretto::cli
