#include "stretto/programs/arguments/resume_command.h"

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::arguments {

std::string resume_command(std::span<const std::string> command_line, const RecipeArguments& arguments,
                           const Recipe& recipe, int ranks) {
  std::string command = shell_word(command_line[0]);
  for (const std::string& word : command_line.subspan(1)) command += " " + shell_word(word);
  const HostArguments& hosts = arguments.launch.hosts;
  const bool lists_hosts = !hosts.hosts.empty() || !hosts.hostfile.empty();  // with their ranks
  if (arguments.launch.ranks == 0 && !lists_hosts) command += fmt::format(" -N {}", ranks);
  if (recipe.resume_mode() != ResumeMode::automatic) command += " --set resume=auto";
  return command;
}

}  // namespace stretto::arguments
