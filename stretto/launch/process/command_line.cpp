#include "stretto/launch/process/command_line.h"

#include <filesystem>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto::launch {

std::vector<std::string> command_line() {
  std::string text = read_file("/proc/self/cmdline");
  if (!text.empty()) text.pop_back();  // each argument ends with a zero byte
  std::vector<std::string> words;
  for (const std::string_view word : split(text, '\0')) words.emplace_back(word);
  return words;
}

std::vector<std::string> own_command() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) throw IoError("cannot read /proc/self/exe, which names this program: {}", failed.message());
  std::vector<std::string> command = command_line();
  command.at(0) = program.string();
  return command;
}

}  // namespace stretto::launch
