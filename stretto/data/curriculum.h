#pragma once

#include <string>
#include <vector>

#include "stretto/data/dataset.h"

namespace stretto::data {

// The run that a curriculum is made for.
struct CurriculumOptions {
  int64_t max_steps = 0;          // of the run: training.max_steps
  int64_t global_batch_size = 1;  // samples per step: training.global_batch_size
  uint64_t seed = 0;
  bool shuffle = true;  // the samples of each stage, for each pass over them
};

// Datasets that are trained on one after the other, each for a number of steps, as easy samples before
// difficult ones:
//   data::Curriculum curriculum({.max_steps = 1000, .global_batch_size = 32, .seed = 42});
//   curriculum.add_steps(easy, 200);        // steps 1 to 200
//   curriculum.add_ratio(medium, 0.3);      // the next 300
//   curriculum.add_range(hard, 500, 800);   // steps 501 to 800
//   curriculum.add_rest(all);
//   trainer.fit(module, curriculum, &validation);
// A stage with more steps than its dataset has batches begins the dataset again, in another order. The
// curriculum is one epoch of max_steps x global_batch_size samples, whose order does not depend on
// training.shuffle, so a run resumes at its exact sample. A sample has another identity in each pass, and
// thus another dropout mask. All stages pack their batches alike; a batch of samples of two stages is
// refused, so the run needs the same global batch size.
class Curriculum : public Dataset {
 public:
  // Throws ConfigError for options out of range.
  explicit Curriculum(const CurriculumOptions& options);

  // Add a stage after the others; `samples` must outlive the curriculum. Throw ConfigError for a dataset
  // without samples, and for steps that do not follow the stages before or exceed max_steps.
  void add_steps(const Dataset& samples, int64_t steps);
  // `ratio`: of max_steps, rounded to whole steps; (0, 1].
  void add_ratio(const Dataset& samples, double ratio);
  // From after step `begin` until after step `end`.
  void add_range(const Dataset& samples, int64_t begin, int64_t end);
  // All steps that are left.
  void add_rest(const Dataset& samples);

  // Throws ConfigError if the stages have fewer than max_steps.
  int64_t size() const override;
  int32_t length_of(int64_t index) const override;
  std::string fingerprint() const override;
  bool pads() const override;
  bool is_ordered() const override { return true; }
  Batch pack(std::span<const int64_t> samples) const override;
  Batch pack_with(std::span<const int64_t> samples, const Collate& collate) const override;

 private:
  struct Stage {
    const Dataset* samples;
    int64_t begin, end;  // steps
    int64_t first_id;    // the identity of its first sample in its first pass
  };
  // A sample of a stage.
  struct Place {
    const Stage* stage;
    int64_t sample;
    int64_t pass;  // over the stage's dataset, of the first sample of its step
  };
  int64_t steps() const { return stages_.empty() ? 0 : stages_.back().end; }
  void add(const Dataset& samples, int64_t end);
  Place place_of(int64_t index) const;
  Batch packed(std::span<const int64_t> samples,
               const std::function<Batch(const Dataset&, std::span<const int64_t>)>& pack) const;

  const CurriculumOptions options_;
  std::vector<Stage> stages_;
};

}  // namespace stretto::data
