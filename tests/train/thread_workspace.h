#pragma once

#include "tests/train/workspace.h"

namespace stretto {

// A workspace whose runs are those of `stretto train` on rank threads of this process: a law over many runs
// is proved without starting a program for each of them.
class ThreadWorkspace : public Workspace {
 public:
  // Trains into the folder `name`. Returns the lines that the run logs. Throws what the run throws.
  std::string train(const std::string& name, int ranks, const std::string& settings = "") const;

  // What a run logs that is refused, and then the reason. Fails the test if it is not: by ConfigError or
  // DataError, for which programs have the exit code 2.
  std::string refusal_of(const std::string& name, int ranks, const std::string& settings = "") const;

 private:
  void run_threads(const std::string& name, int ranks, const std::string& settings) const;
};

}  // namespace stretto
