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

// The saved order. Older checkpoints name neither seed nor shuffle, which had to be the run's, and the oldest not
// group_by_length, which was always on.
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
      "the checkpoint's position in the data is not possible: place.{} is {}; a whole number from 0 to {} was expected. Resume from another checkpoint",
      name, found == position.end() ? "missing" : found->dump(), limit - 1);
}

}  // namespace

EpochCursor::EpochCursor(const Dataset& dataset, const BatchOptions& options) : batches_(dataset, options) {}

double EpochCursor::epochs_done() const {
  return static_cast<double>(epoch_) +
         static_cast<double>(samples_taken_) / static_cast<double>(batches_.dataset().size());
}

int64_t EpochCursor::batches_now() const {
  return rest_ ? std::ssize(rest_->begins) - 1 : batches_.batches(epoch_);
}

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
  if (epoch_ == whole) {  // the batches of the rest have another size
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
  const auto batch = static_cast<size_t>(batch_);
  return {rest_->samples.begin() + rest_->begins[batch], rest_->samples.begin() + rest_->begins[batch + 1]};
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

void EpochCursor::require_same_data(const nlohmann::json& saved, const std::string& name) const {
  const std::string other = difference(name, saved, batches_.dataset());
  if (other.empty()) return;
  throw ConfigError(
      "{}; a run can be resumed on the same data only. Restore the data and the model's tokenizer, or choose another output to train on the new data",
      other);
}

// Everything of the epoch's order that comes after the samples taken, cut from its start: batches of this run that were
// cut from an earlier part of the rest begin at the same samples.
EpochCursor::Rest EpochCursor::rest_of_epoch(const nlohmann::json& order, int64_t epoch,
                                             int64_t samples_taken) const {
  const auto lengths = batches_.dataset().lengths();
  const Sampler before(lengths, from_json(order));
  Rest rest{.order = order, .samples = {}, .begins = {}};
  const auto start = before.find(epoch, samples_taken);
  for (int64_t batch = start.batch; batch < before.batches(epoch); ++batch) {
    const auto samples = before.batch(epoch, batch);
    rest.samples.insert(rest.samples.end(), samples.begin(), samples.end());
  }
  rest.samples.erase(rest.samples.begin(), rest.samples.begin() + (samples_taken - start.samples_before));
  rest.begins = cut_batches(rest.samples, lengths, batches_.order());
  return rest;
}

void EpochCursor::resume(const State& state, const std::string& name) {
  require_same_data(state.scalar("data"), name);
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
