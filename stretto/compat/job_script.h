#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stretto::compat {

// A word of a command, with the values of variables.
struct ShellWord {
  std::string text;
  std::string unknown;  // why the value, or a part of it, is not known: "line 3: ..."; empty: it is known
};

// A quotient that is not whole, which bash rounds.
struct RoundedQuotient {
  std::string text;  // with the place, and the values of variables
  int64_t value = 0;
};

// The command with which a job script starts its ranks.
struct JobCommand {
  std::vector<ShellWord> words;  // begins with torchrun, or what stands for it
  int64_t line = 0;
  std::vector<std::string> notes;  // about the script
  std::vector<RoundedQuotient> rounded;
};

// Reads a job script of bash, such as those of NeuronxDistributed, without running anything: assignments,
// conditions, arithmetic and the usual expansions of variables. What would need a command to run, such as
// "$(hostname)", is not known, except for the folder of the script. Returns its first command that is
// torchrun (or python -m torch.distributed.run). `given`: variables of the environment; they also replace
// what the script assigns to them. Throws ConfigError with file and line.
JobCommand read_job_script(const std::filesystem::path& file,
                           const std::map<std::string, std::string>& given = {});

}  // namespace stretto::compat
