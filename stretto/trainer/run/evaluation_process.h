#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include <sys/types.h>

#include "stretto/trainer/run/message_socket.h"
#include "stretto/trainer/run/validation.h"

namespace stretto::trainer {

// The process that evaluates snapshots of a run while the ranks train (evaluate.async): this program, started
// again with the same arguments as a single rank, which calls serve_evaluations() in Trainer::fit(). It is
// killed at the end of this object or of this process.
class EvaluationProcess {
 public:
  // `samples`: Evaluator::identities(), which that process must find too. `gpu`: its GPU, of those that this
  // process sees; ignored on CPU. Throws IoError.
  EvaluationProcess(nlohmann::json samples, int gpu);
  EvaluationProcess(const EvaluationProcess&) = delete;
  EvaluationProcess& operator=(const EvaluationProcess&) = delete;
  ~EvaluationProcess();

  // Evaluates the weights in a file, those after `step`. A snapshot that was submitted before and not taken
  // is dropped.
  void submit(int64_t step, const std::filesystem::path& weights);

  // The result of the submitted snapshot, or nullopt if there is none within `patience`. If the process ends
  // instead, it is started once more for this snapshot, with a warning. Throws Error if it ends again or the
  // evaluation fails there.
  std::optional<Validated> take(std::chrono::milliseconds patience);

 private:
  void start();
  void restart();
  std::string end_text();
  void send();

  const nlohmann::json samples_;
  const int gpu_;
  pid_t pid_ = -1;
  std::unique_ptr<MessageSocket> socket_;
  nlohmann::json request_;  // null: nothing is submitted
  int64_t requests_ = 0;
  bool restarted_ = false;  // for this request
};

}  // namespace stretto::trainer
