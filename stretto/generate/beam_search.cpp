#include "stretto/generate/beam_search.h"

#include <algorithm>
#include <cmath>

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
    for (float& score : row) score += running_[i].score;
  }
  return all.flatten();
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
  const int64_t wanted = std::min(all.numel(), std::max<int64_t>(2, 1 + ends) * options_.num_beams);
  const auto [best, where] = at::topk(all, wanted);
  const auto* score = best.const_data_ptr<float>();
  const auto* index = where.const_data_ptr<int64_t>();
  std::vector<Continuation> continued;
  std::vector<Beam> running;
  for (int64_t i = 0; i < wanted; ++i) {
    if (std::isinf(score[i])) break;
    const Continuation next = {static_cast<size_t>(index[i] / logits.size(1)),
                               static_cast<int32_t>(index[i] % logits.size(1))};
    Beam beam = {running_[next.parent].new_tokens, score[i]};
    beam.new_tokens.push_back(next.token);
    if (has_ended(beam.new_tokens)) {
      if (i < options_.num_beams) finish(std::move(beam));
    } else if (std::ssize(running) < options_.num_beams) {
      running.push_back(std::move(beam));
      continued.push_back(next);
    }
  }
  running_ = std::move(running);
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
