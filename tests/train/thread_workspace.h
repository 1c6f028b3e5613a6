#pragma once

#include "tests/train/workspace.h"

#include "stretto/config/recipe.h"

namespace stretto {

// A workspace whose runs are those of `stretto train` on rank threads of this process: a law is tested on
// many runs without starting a program for each.
class ThreadWorkspace : public Workspace {
 public:
  // Trains into the folder `name`. Returns the lines that the run logs. Rethrows the run's exception.
  std::string train(const std::string& name, int ranks, const std::string& settings = "") const;

  // Evaluates the model of the run in the folder `name`, as `stretto test`.
  void test(const std::string& name, int ranks, const std::string& settings = "") const;

  // Returns the log of a run that must be refused, followed by the reason. Fails the test unless it is
  // refused with ConfigError or DataError, for which programs have the exit code 2.
  std::string refusal_of(const std::string& name, int ranks, const std::string& settings = "") const;

 private:
  void run_threads(Verb verb, const std::string& name, int ranks, const std::string& settings) const;
};

}  // namespace stretto
