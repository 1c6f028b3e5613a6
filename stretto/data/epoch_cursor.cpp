#include "stretto/data/epoch_cursor.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/data/identity.h"

namespace stretto::data {
namespace {

nlohmann::json to_json(const SamplerOptions& order) {
  return {{"seed", order.seed},
          {"shuffle", order.shuffle},
          {"global_batch_size", order.global_batch_size},
          {"max_tokens", order.max_tokens},
          {"group_by_length", order.group_by_length}};
}

// The saved order. Older checkpoints lack seed and shuffle, which had to equal the run's, and the oldest lack
// group_by_length, which was always true.
nlohmann::json saved_order(const nlohmann::json& position, const SamplerOptions& here) {
  nlohmann::json order = position.at("order");
  if (!order.contains("group_by_length")) order["group_by_length"] = true;
  if (!order.contains("seed")) order["seed"] = here.seed;
  if (!order.contains("shuffle")) order["shuffle"] = here.shuffle;
  return order;
}

SamplerOptions from_json(const nlohmann::json& order) {
  SamplerOptions options;
  order.at("seed").get_to(options.seed);
  order.at("shuffle").get_to(options.shuffle);
  order.at("global_batch_size").get_to(options.global_batch_size);
  order.at("max_tokens").get_to(options.max_tokens);
  order.at("group_by_length").get_to(options.group_by_length);
  return options;
}

int64_t read_count(const nlohmann::json& position, const char* name, int64_t limit) {
  const auto found = position.find(name);
  const auto value = found == position.end() ? std::nullopt : whole_number(*found);
  if (value && *value >= 0 && *value < limit) return *value;
  throw DataError(
      "the checkpoint's position in the data is invalid: place.{} is {}; expected a whole number from 0 to {}. Resume from another checkpoint",
      name, found == position.end() ? "missing" : found->dump(), limit - 1);
}

}  // namespace

EpochCursor::EpochCursor(const Dataset& dataset, const BatchOptions& options, std::string name)
    : batches_(dataset, options), name_(std::move(name)) {}

double EpochCursor::epochs_done() const {
  return static_cast<double>(epoch_) +
         static_cast<double>(samples_taken_) / static_cast<double>(batches_.dataset().size());
}

int64_t EpochCursor::batches_now() const { return rest_ ? rest_->batches : batches_.batches(epoch_); }

int64_t EpochCursor::steps_left(double epochs) const {
  const auto whole = static_cast<int64_t>(epochs);
  const double part = epochs - static_cast<double>(whole);
  // 0.1 x 30 is above 3 in floating point.
  const auto batches_of_part = [part](int64_t batches) {
    return static_cast<int64_t>(std::ceil(part * static_cast<double>(batches) - 1e-9));
  };
  if (epoch_ > whole) return 0;
  if (epoch_ == whole && !rest_)
    return std::max<int64_t>(batches_of_part(batches_.batches(whole)) - batch_, 0);
  if (epoch_ == whole) {  // the remaining batches have another size
    const double done = static_cast<double>(samples_taken_) / static_cast<double>(batches_.dataset().size());
    const double left = static_cast<double>(batches_now() - batch_) * (part - done) / (1 - done);
    return std::max<int64_t>(static_cast<int64_t>(std::ceil(left - 1e-9)), 0);
  }
  int64_t steps = batches_now() - batch_;
  for (int64_t epoch = epoch_ + 1; epoch < whole; ++epoch) steps += batches_.batches(epoch);
  return part > 0 ? steps + batches_of_part(batches_.batches(whole)) : steps;
}

std::vector<int64_t> EpochCursor::next_samples() const {
  if (!rest_) return batches_.sampler().batch(epoch_, batch_);
  std::vector<int64_t> samples;
  BatchCutter cutter(batches_.order());
  rest_->sampler->each_from(epoch_, samples_taken_, [&](int64_t sample) {
    if (cutter.cuts_before(batches_.dataset().length_of(sample))) return false;
    samples.push_back(sample);
    return true;
  });
  return samples;
}

GlobalBatch EpochCursor::batch() const { return batches_.split(next_samples()); }

void EpochCursor::advance() {
  const int64_t samples = std::ssize(next_samples());
  ++batch_;
  samples_taken_ += samples;
  if (batch_ < batches_now()) return;
  ++epoch_;
  batch_ = samples_taken_ = 0;
  rest_.reset();
}

void EpochCursor::add_state(State& state) const {
  state.scalars["data"] = identify(batches_.dataset());
  state.scalars["place"] = {{"epoch", epoch_},
                            {"batch", batch_},
                            {"samples", samples_taken_},
                            {"order", rest_ ? rest_->order : to_json(batches_.order())}};
}

void EpochCursor::require_same_data(const nlohmann::json& saved) const {
  const std::string other = difference(name_, saved, batches_.dataset());
  if (other.empty()) return;
  throw ConfigError(
      "{}; a run can be resumed on the same data only. Restore the data and the model's tokenizer, or choose another output to train on the new data",
      other);
}

// The batches of the rest begin at the next sample, so that a run that is resumed from one of them has the
// same batches after it.
EpochCursor::Rest EpochCursor::rest_of_epoch(const nlohmann::json& order, int64_t epoch,
                                             int64_t samples_taken) const {
  const Dataset& dataset = batches_.dataset();
  Rest rest = {.order = order,
               .sampler = std::make_unique<Sampler>(lengths_of(dataset), from_json(order)),
               .batches = 1};
  const SamplerOptions& here = batches_.order();
  if (here.max_tokens == 0) {
    rest.batches = (dataset.size() - samples_taken + here.global_batch_size - 1) / here.global_batch_size;
    return rest;
  }
  BatchCutter cutter(here);
  rest.sampler->each_from(epoch, samples_taken, [&](int64_t sample) {
    rest.batches += cutter.cuts_before(dataset.length_of(sample)) ? 1 : 0;
    return true;
  });
  return rest;
}

void EpochCursor::resume(const State& state) {
  require_same_data(state.scalar("data"));
  const nlohmann::json& position = state.scalar("place");
  const int64_t epoch = read_count(position, "epoch", int64_t{1} << 53);
  const int64_t samples = read_count(position, "samples", std::max<int64_t>(1, batches_.dataset().size()));
  int64_t batch = 0;
  std::optional<Rest> rest;
  try {
    const nlohmann::json order = saved_order(position, batches_.order());
    const auto here = batches_.sampler().find(epoch, samples);
    const bool same_batches = order == to_json(batches_.order()) && here.samples_before == samples;
    if (samples > 0 && !same_batches) {
      rest = rest_of_epoch(order, epoch, samples);
    } else {
      batch = here.batch;
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError("the checkpoint's place.order is not readable: {}. Resume from another checkpoint",
                    error.what());
  }
  epoch_ = epoch;
  batch_ = batch;
  samples_taken_ = samples;
  rest_ = std::move(rest);
}

}  // namespace stretto::data
