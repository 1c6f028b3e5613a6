#include "stretto/generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "stretto/generate/logit_rules.h"

namespace stretto::generate {
namespace {

float divided(float score, int64_t length, double length_penalty) {
  return score / static_cast<float>(std::pow(static_cast<double>(length), length_penalty));
}

}  // namespace

BeamSearch::BeamSearch(const GenerationOptions& options, const SearchEvents& events, SearchStart start)
    : Search(options, events, std::move(start)), running_{{{}, 0}} {}

Tensor BeamSearch::scores(const Tensor& logits) const {
  Tensor all = at::log_softmax(logits, 1);
  const auto width = static_cast<size_t>(all.size(1));
  for (size_t i = 0; i < running_.size(); ++i) {
    const auto& added = running_[i].new_tokens;
    const std::span row(all.mutable_data_ptr<float>() + i * width, width);
    apply_rules(options_, text(added), std::ssize(added), row);
  }
  return options_.renormalize_logits && !options_.do_sample ? at::log_softmax(all, 1) : all;
}

// The continuations with the best scores, the best first.
std::vector<BeamSearch::Candidate> BeamSearch::best(const Tensor& scores, int64_t count) const {
  for (size_t i = 0; i < running_.size(); ++i) scores[static_cast<int64_t>(i)].add_(running_[i].score);
  const auto [values, where] = at::topk(scores.flatten(), std::min(scores.numel(), count));
  const auto* value = values.const_data_ptr<float>();
  const auto* index = where.const_data_ptr<int64_t>();
  std::vector<Candidate> found;
  for (int64_t i = 0; i < values.numel() && !std::isinf(value[i]); ++i) {
    found.push_back(
        {{static_cast<size_t>(index[i] / scores.size(1)), static_cast<int32_t>(index[i] % scores.size(1))},
         value[i]});
  }
  return found;
}

// Continuations that are drawn without replacement, with probabilities proportional to the exponentials of
// their scores, in the order in which they are drawn.
std::vector<BeamSearch::Candidate> BeamSearch::drawn(const Tensor& scores, int64_t count) const {
  const auto width = static_cast<size_t>(scores.size(1));
  std::vector<Candidate> all, found;
  float largest = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < running_.size(); ++i) {
    const std::span row(scores.const_data_ptr<float>() + i * width, width);
    for (const Choice& one : choices_of(options_, row)) {
      all.push_back({{i, one.token}, static_cast<float>(running_[i].score + one.logit)});
      largest = std::max(largest, all.back().score);
    }
  }
  std::vector<double> weights;
  for (const Candidate& one : all) weights.push_back(std::exp(static_cast<double>(one.score - largest)));
  for (int64_t i = 0; i < count && std::ranges::any_of(weights, [](double weight) { return weight > 0; });
       ++i) {
    const size_t index = draw_one(weights, random_number(options_.seed, start_.index, i, steps_));
    found.push_back(all[index]);
    weights[index] = 0;
  }
  return found;
}

void BeamSearch::finish(Beam beam) {
  beam.score = divided(beam.score, std::ssize(beam.new_tokens), options_.length_penalty);
  const auto place = std::ranges::find_if(finished_, [&](const Beam& one) { return one.score < beam.score; });
  finished_.insert(place, std::move(beam));
  if (std::ssize(finished_) > options_.num_beams) finished_.pop_back();
}

// Whether the best running beam could be among the finished ones.
bool BeamSearch::can_improve() const {
  if (running_.empty()) return false;
  if (std::ssize(finished_) < options_.num_beams) return true;
  if (options_.early_stopping == EarlyStopping::yes) return false;
  const bool grows = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  const int64_t length = grows ? start_.max_new_tokens : std::ssize(running_[0].new_tokens);
  return divided(running_[0].score, length, options_.length_penalty) > finished_.back().score;
}

std::vector<Continuation> BeamSearch::step(const Tensor& logits) {
  const Tensor all = scores(logits);
  // Each beam may end with any of the end tokens, and num_beams beams must be left that do not.
  const int64_t ends = std::ssize(options_.eos_token_id);
  const int64_t wanted = std::max<int64_t>(2, 1 + ends) * options_.num_beams;
  const auto candidates = options_.do_sample ? drawn(all, wanted) : best(all, wanted);
  std::vector<std::pair<Beam, Continuation>> running;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& [next, score] = candidates[i];
    Beam beam = {running_[next.parent].new_tokens, score};
    beam.new_tokens.push_back(next.token);
    if (!has_ended(beam.new_tokens)) {
      running.emplace_back(std::move(beam), next);
    } else if (static_cast<int64_t>(i) < options_.num_beams) {
      finish(std::move(beam));
    }
  }
  std::ranges::stable_sort(running, std::greater{}, [](const auto& one) { return one.first.score; });
  running.resize(std::min(running.size(), static_cast<size_t>(options_.num_beams)));
  running_.clear();
  std::vector<Continuation> continued;
  for (auto& [beam, next] : running) {
    running_.push_back(std::move(beam));
    continued.push_back(next);
  }
  ++steps_;
  if (!can_improve()) continued.clear();
  return continued;
}

std::vector<std::vector<int32_t>> BeamSearch::results() const {
  std::vector<std::vector<int32_t>> found;
  for (const Beam& beam : finished_)
    if (std::ssize(found) < options_.num_return_sequences) found.push_back(beam.new_tokens);
  return found;
}

}  // namespace stretto::generate
