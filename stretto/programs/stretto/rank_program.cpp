#include "stretto/programs/stretto/rank_program.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/programs/stretto/own_prefix.h"

namespace stretto::cli {

std::vector<std::string> rank_command(std::vector<std::string> arguments) {
  const std::filesystem::path program = own_prefix() / "libexec/stretto/stretto-rank";
  if (!std::filesystem::exists(program)) {
    throw ConfigError(
        "{} is missing; it is part of stretto and runs the computation: build or install all of stretto",
        program.string());
  }
  require_torch(own_prefix());
  arguments.insert(arguments.begin(), program.string());
  return arguments;
}

std::vector<std::string> rank_command() {
  std::vector<std::string> arguments = launch::command_line();
  arguments.erase(arguments.begin());
  return rank_command(std::move(arguments));
}

void become_rank_program(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  throw IoError("cannot run {}: {}", command[0], std::strerror(errno));
}

}  // namespace stretto::cli
