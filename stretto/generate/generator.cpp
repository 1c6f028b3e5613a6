#include "stretto/generate/generator.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::generate {
namespace {

// The maximum number of results that wait for the result of an earlier prompt, per prompt that is continued.
constexpr int64_t waiting_per_request = 16;

}  // namespace

Generator::Generator(GeneratorParts parts)
    : parts_(std::move(parts)), decoder_(parts_.model.capabilities().causal_decoder) {
  if (decoder_ == nullptr)
    throw ConfigError(
        "generation needs a model that predicts next tokens (...ForCausalLM); this one does not");
  if (parts_.batch_size < 1)
    throw ConfigError("batch_size: found {}; expected at least 1", parts_.batch_size);
  check(parts_.options, parts_.model.limits().vocab_size, parts_.names);
}

void Generator::require_prompt(const std::vector<int32_t>& prompt) const {
  const TextLimits limits = parts_.model.limits();
  if (prompt.empty()) throw DataError("the prompt is empty; expected at least one token");
  for (const int32_t id : prompt) {
    if (id < 0 || id >= limits.vocab_size)
      throw DataError("the prompt has the id {}, but the model's vocabulary has {}", id, limits.vocab_size);
  }
  const int64_t tokens = std::ssize(prompt);
  if (tokens >= limits.max_length) {
    throw DataError("the prompt has {} tokens, and the model {} positions; cut it to fewer", tokens,
                    limits.max_length);
  }
  if (max_new_tokens(parts_.options, tokens, limits.max_length) < 1) {
    throw DataError("the prompt has {} tokens, and max_length is {}; give {}", tokens,
                    *parts_.options.max_length, parts_.names("max_new_tokens"));
  }
}

void Generator::add(std::vector<int32_t> prompt, int64_t index) {
  require_prompt(prompt);
  SearchStart start = {prompt, index,
                       max_new_tokens(parts_.options, std::ssize(prompt), parts_.model.limits().max_length)};
  awaited_.push_back(index);
  Request request = {index, make_search(parts_.options, parts_.events, std::move(start)), {}};
  request.sequences.push_back({{}, std::move(prompt)});
  requests_.push_back(std::move(request));
  while (std::ssize(requests_) >= parts_.batch_size ||
         std::ssize(awaited_) >= waiting_per_request * parts_.batch_size)
    pass();
}

void Generator::finish() {
  while (!requests_.empty()) pass();
}

Tensor Generator::read() {
  std::vector<int64_t> ids, positions, samples, bounds = {0};
  std::vector<std::pair<Sequence*, size_t>> begun;
  for (Request& request : requests_) {
    for (Sequence& sequence : request.sequences) {
      const size_t before = sequence.rows.size();
      for (const int64_t row : cache_.take(std::ssize(sequence.unread))) sequence.rows.push_back(row);
      for (const int32_t id : sequence.unread) {
        ids.push_back(id);
        positions.push_back(static_cast<int64_t>(before) + std::ssize(ids) - 1 - bounds.back());
        samples.push_back(std::ssize(bounds) - 1);
      }
      bounds.push_back(std::ssize(ids));
      begun.emplace_back(&sequence, before);
      sequence.unread.clear();
    }
  }
  std::vector<nn::KeyValueCache::Sequence> sequences;
  for (const auto& [sequence, before] : begun) sequences.push_back({sequence->rows, before});
  cache_.begin_pass(sequences);
  Batch batch;
  batch.tensors = {{"input_ids", at::tensor(ids)},
                   {"position_ids", at::tensor(positions)},
                   {"samples", at::tensor(samples)},
                   {"cu_seqlens", at::tensor(bounds)}};
  batch.count = std::ssize(sequences);
  const Tensor hidden = parts_.model.forward(batch, {.kernels = parts_.kernels, .cache = &cache_});
  const Tensor last = batch.at("cu_seqlens").slice(0, 1) - 1;
  return decoder_->logits(hidden.index_select(0, last)).to(at::kFloat).contiguous();
}

// Gives the request its sequences for the next pass.
void Generator::advance(Request& request, const Tensor& logits) {
  if (at::isnan(logits).any().item<bool>())
    throw DataError("the logits of prompt {} are not numbers: the model's activations overflow",
                    request.index + 1);
  std::vector<Sequence> next;
  for (const auto& [parent, token] : request.search->step(logits)) {
    next.push_back({request.sequences[parent].rows, {token}});
    cache_.share(next.back().rows);
  }
  for (const Sequence& sequence : request.sequences) cache_.release(sequence.rows);
  request.sequences = std::move(next);
}

void Generator::pass() {
  const at::NoGradGuard no_grad;
  const Tensor logits = read();
  int64_t row = 0;
  for (Request& request : requests_) {
    const int64_t rows = std::ssize(request.sequences);
    advance(request, logits.slice(0, row, row + rows));
    row += rows;
    if (request.sequences.empty()) ended_[request.index] = request.search->results();
  }
  std::erase_if(requests_, [](const Request& request) { return request.sequences.empty(); });
  deliver();
}

void Generator::deliver() {
  while (!ended_.empty() && ended_.begin()->first == awaited_.front()) {
    const auto first = ended_.extract(ended_.begin());
    awaited_.pop_front();
    if (parts_.on_generated) parts_.on_generated(first.key(), first.mapped());
  }
}

}  // namespace stretto::generate
