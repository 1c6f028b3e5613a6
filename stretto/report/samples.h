#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stretto/report/run_data.h"

namespace stretto::report {

// Predictions of `stretto test`, from predictions.jsonl.
struct Samples {
  struct Sample {
    int64_t line = 0;  // of the data file
    // The sample's text, or the two of a pair on a line each; else its line of the data file; empty if none can be read.
    std::string text;
    std::string label, gold;
    double score = 0;
    bool wrong() const { return label != gold; }
  };
  int64_t count = 0, labelled = 0, wrong = 0;
  std::vector<Sample> shown;  // the wrong ones of the highest score first, then right ones
};

// At most `most` samples of a run; none if it has no predictions.jsonl. Texts are cut to 300 characters.
Samples read_samples(const RunData& run, size_t most);

// What the log of rank 0 says of its last start, before the first step: model, types, memory, communication, batch.
std::string read_start(const RunData& run);

}  // namespace stretto::report
