#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace stretto::cli {

// Writes into `output` what Flair's trainer writes there, from a finished run in folder `run`.
class FlairResults {
 public:
  FlairResults(std::filesystem::path run, std::filesystem::path output)
      : run_(std::move(run)), output_(std::move(output)) {}

  // loss.tsv, a row per epoch, and training.log.
  void write_training() const;
  // dev.tsv (`stage` eval) or test.tsv: "token gold predicted" with spaces, in BIO whatever the model's scheme.
  void write_predictions(const std::string& stage) const;
  // The results on the test set, as the end of training.log.
  void log_test(const nlohmann::json& results) const;

 private:
  std::filesystem::path run_, output_;
};

}  // namespace stretto::cli
