#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stretto/report/run_data.h"

namespace stretto::report {

// Predictions of `stretto test`, from predictions.jsonl.
struct Samples {
  struct Sample {
    int64_t line = 0;  // line in the data file
    // The sample's text, or the two texts of a pair on a line each; if unavailable, its line of the data
    // file; empty if that cannot be read.
    std::string text;
    std::string label, gold;
    double score = 0;
    bool wrong() const { return label != gold; }
  };
  int64_t count = 0, labelled = 0, wrong = 0;
  std::vector<Sample> shown;  // wrong predictions first, by descending score, then right ones
};

// Returns at most `most` samples of a run; none if it has no predictions.jsonl. Texts are truncated to 300
// characters.
Samples read_samples(const RunData& run, size_t most);

// Texts that the model has written in an evaluation, from texts.jsonl.
struct WrittenTexts {
  int64_t step = 0;
  std::vector<std::string> texts;
};

// Returns the texts of the last evaluations, at most `most`, the last one first; none if the run has no
// texts.jsonl. Texts are truncated to 300 characters.
std::vector<WrittenTexts> read_written(const RunData& run, size_t most);

// The lines of rank 0's log from its last start to the first step: model, dtypes, memory, communication,
// batch.
std::string read_start(const RunData& run);

}  // namespace stretto::report
