#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace stretto::cli {

// Writes the files of Flair's trainer to `output`, from a finished run in folder `run`.
class FlairResults {
 public:
  FlairResults(std::filesystem::path run, std::filesystem::path output)
      : run_(std::move(run)), output_(std::move(output)) {}

  // Writes loss.tsv, with a row per epoch, and training.log.
  void write_training() const;
  // Writes dev.tsv (`stage` eval) or test.tsv: "token gold predicted" separated by spaces, in BIO for any
  // scheme of the model.
  void write_predictions(const std::string& stage) const;
  // Appends the results on the test set to training.log.
  void log_test(const nlohmann::json& results) const;

 private:
  std::filesystem::path run_, output_;
};

}  // namespace stretto::cli
