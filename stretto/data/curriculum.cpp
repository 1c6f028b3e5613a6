#include "stretto/data/curriculum.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/philox.h"

namespace stretto::data {

Curriculum::Curriculum(const CurriculumOptions& options) : options_(options) {
  if (options.max_steps < 1 || options.global_batch_size < 1) {
    throw ConfigError("curriculum: {} steps of {} samples; expected at least one of each", options.max_steps,
                      options.global_batch_size);
  }
}

void Curriculum::add(const Dataset& samples, int64_t end) {
  const int64_t begin = steps(), number = std::ssize(stages_) + 1;
  if (samples.size() == 0) throw ConfigError("curriculum: the dataset of stage {} has no samples", number);
  if (end <= begin || end > options_.max_steps) {
    throw ConfigError(
        "curriculum: stage {} begins after step {} and cannot end at step {}; expected an end up to max_steps, which is {}",
        number, begin, end, options_.max_steps);
  }
  int64_t first_id = 0;
  if (begin > 0) {
    const Stage& last = stages_.back();
    const int64_t size = last.samples->size();
    first_id = last.first_id + ((last.end - last.begin) * options_.global_batch_size / size + 1) * size;
  }
  stages_.push_back({&samples, begin, end, first_id});
}

void Curriculum::add_steps(const Dataset& samples, int64_t steps) {
  if (steps < 1)
    throw ConfigError("curriculum: stage {} has {} steps; expected at least 1", std::ssize(stages_) + 1,
                      steps);
  add(samples, this->steps() + std::min(steps, options_.max_steps + 1));
}

void Curriculum::add_ratio(const Dataset& samples, double ratio) {
  if (!(ratio > 0 && ratio <= 1)) {
    throw ConfigError("curriculum: stage {} has the ratio {:g}; expected a part of max_steps, in (0, 1]",
                      std::ssize(stages_) + 1, ratio);
  }
  const auto steps = std::llround(ratio * static_cast<double>(options_.max_steps));
  add(samples, this->steps() + std::max<int64_t>(1, steps));
}

void Curriculum::add_range(const Dataset& samples, int64_t begin, int64_t end) {
  if (begin != steps()) {
    throw ConfigError(
        "curriculum: stage {} has the range {} to {}, but the stages before end at step {}; expected a range from there",
        std::ssize(stages_) + 1, begin, end, steps());
  }
  add(samples, end);
}

void Curriculum::add_rest(const Dataset& samples) { add(samples, options_.max_steps); }

int64_t Curriculum::size() const {
  if (steps() < options_.max_steps) {
    throw ConfigError("curriculum: the stages have {} of {} steps; add_rest() adds a stage with the others",
                      steps(), options_.max_steps);
  }
  return options_.max_steps * options_.global_batch_size;
}

Curriculum::Place Curriculum::place_of(int64_t index) const {
  const int64_t step = index / options_.global_batch_size;
  const auto stage = std::ranges::upper_bound(stages_, step, {}, &Stage::end);
  const int64_t size = stage->samples->size(), first = stage->begin * options_.global_batch_size;
  const int64_t drawn = index - first, pass = drawn / size;
  const int64_t pass_of_step = (step * options_.global_batch_size - first) / size;
  if (!options_.shuffle) return {&*stage, drawn % size, pass_of_step};
  const auto number = static_cast<uint64_t>(stage - stages_.begin());
  const Permutation order(static_cast<uint64_t>(size),
                          hash64(std::array{options_.seed, number, static_cast<uint64_t>(pass)}));
  return {&*stage, static_cast<int64_t>(order(static_cast<uint64_t>(drawn % size))), pass_of_step};
}

int32_t Curriculum::length_of(int64_t index) const {
  const Place place = place_of(index);
  return place.stage->samples->length_of(place.sample);
}

std::string Curriculum::fingerprint() const {
  std::string all = fmt::format("{}/{}/{}/{}", options_.max_steps, options_.global_batch_size, options_.seed,
                                options_.shuffle);
  for (const Stage& stage : stages_) all += fmt::format("/{}:{}", stage.end, stage.samples->fingerprint());
  return fmt::format("curriculum-{}", hash128_hex(all));
}

bool Curriculum::pads() const {
  return std::ranges::any_of(stages_, [](const Stage& stage) { return stage.samples->pads(); });
}

Batch Curriculum::packed(std::span<const int64_t> samples,
                         const std::function<Batch(const Dataset&, std::span<const int64_t>)>& pack) const {
  if (samples.empty()) return {};
  const Place first = place_of(samples[0]);
  std::vector<int64_t> of_stage;
  of_stage.reserve(samples.size());
  for (const int64_t sample : samples) {
    const Place place = place_of(sample);
    if (place.stage != first.stage) {
      throw ConfigError(
          "curriculum: a batch has samples of two stages; train with the curriculum's global batch size, {}",
          options_.global_batch_size);
    }
    of_stage.push_back(place.sample);
  }
  Batch batch = pack(*first.stage->samples, of_stage);
  const int64_t offset = first.stage->first_id + first.pass * first.stage->samples->size();
  for (int64_t& id : batch.sample_ids) id += offset;
  if (batch.has("samples")) batch.tensors["samples"] = batch.at("samples") + offset;
  return batch;
}

Batch Curriculum::pack(std::span<const int64_t> samples) const {
  return packed(samples, [](const Dataset& stage, auto chosen) { return stage.pack(chosen); });
}

Batch Curriculum::pack_with(std::span<const int64_t> samples, const Collate& collate) const {
  return packed(samples, [&](const Dataset& stage, auto chosen) { return stage.pack_with(chosen, collate); });
}

}  // namespace stretto::data
