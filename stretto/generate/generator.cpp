#include "stretto/generate/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/base/error.h"

namespace stretto::generate {
namespace {

// The maximum number of results that wait for the result of an earlier prompt, per prompt that is continued.
constexpr int64_t waiting_per_request = 16;

// A prompt waits until another one that is being read has read so many common tokens for both.
constexpr size_t worth_waiting_for = 16;

at::Device device_of(const TextModel& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? at::Device(at::kCPU) : parameters.front().device();
}

size_t common_tokens(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Generator::Generator(GeneratorParts parts)
    : parts_(std::move(parts)),
      decoder_(parts_.model.capabilities().causal_decoder),
      device_(device_of(parts_.model)) {
  if (decoder_ == nullptr)
    throw ConfigError(
        "generation needs a model that predicts next tokens (...ForCausalLM); this one does not");
  if (parts_.batch_size < 1)
    throw ConfigError("batch_size: found {}; expected at least 1", parts_.batch_size);
  check(parts_.options, parts_.model.limits().vocab_size, parts_.names);
}

int64_t Generator::longest() const {
  const TextLimits limits = parts_.model.limits();
  return limits.writes_on ? std::numeric_limits<int64_t>::max() : limits.max_length;
}

void Generator::require_prompt(const std::vector<int32_t>& prompt) const {
  const int64_t vocab_size = parts_.model.limits().vocab_size;
  if (prompt.empty()) throw DataError("the prompt is empty; expected at least one token");
  for (const int32_t id : prompt) {
    if (id < 0 || id >= vocab_size)
      throw DataError("the prompt has the id {}, but the model's vocabulary has {}", id, vocab_size);
  }
  const int64_t tokens = std::ssize(prompt);
  if (tokens >= longest()) {
    throw DataError("the prompt has {} tokens, and the model {} positions; cut it to fewer", tokens,
                    longest());
  }
  if (max_new_tokens(parts_.options, tokens, longest()) < 1) {
    throw DataError("the prompt has {} tokens, and max_length is {}; give {}", tokens,
                    *parts_.options.max_length, parts_.names("max_new_tokens"));
  }
}

void Generator::add(std::vector<int32_t> prompt, int64_t index) {
  require_prompt(prompt);
  SearchStart start = {prompt, index, max_new_tokens(parts_.options, std::ssize(prompt), longest())};
  awaited_.push_back(index);
  Request request = {index, make_search(parts_.options, parts_.events, std::move(start)), {prompt, {}}, {}};
  request.sequences.push_back({{}, std::move(prompt)});
  requests_.push_back(std::move(request));
  while (std::ssize(requests_) >= parts_.batch_size ||
         std::ssize(awaited_) >= waiting_per_request * parts_.batch_size)
    pass();
}

void Generator::finish() {
  while (!requests_.empty()) pass();
}

// Gives a request whose prompt was not read the rows of tokens that it has in common with another prompt, but
// for its last token, whose logits are needed. Returns false if it must wait for an earlier request that is
// reading such tokens.
bool Generator::begin(Request& request, std::span<const Request> earlier) {
  const int64_t steady = parts_.model.limits().steady_length;
  Prompt& prompt = request.prompt;
  if (std::ssize(prompt.tokens) > steady) return true;
  std::span<const int64_t> shared;
  bool waits = false;
  const auto consider = [&](const Prompt& other) {
    if (std::ssize(other.tokens) > steady) return;
    const size_t common = std::min(common_tokens(prompt.tokens, other.tokens), prompt.tokens.size() - 1);
    waits |= common >= worth_waiting_for && common > other.rows.size() && !other.is_read();
    const size_t there = std::min(common, other.rows.size());
    if (there > shared.size()) shared = std::span(other.rows).first(there);
  };
  for (const Request& one : earlier) consider(one.prompt);
  if (waits) return false;
  consider(last_);
  prompt.rows.assign(shared.begin(), shared.end());
  cache_.share(prompt.rows);
  cache_.share(prompt.rows);
  Sequence& sequence = request.sequences.front();
  sequence.rows = prompt.rows;
  sequence.unread.erase(sequence.unread.begin(), sequence.unread.begin() + std::ssize(prompt.rows));
  return true;
}

// The number of tokens that each sequence of the request reads in a pass. Prompts whose states depend on
// their length are read at once.
int64_t Generator::tokens_to_read(const Request& request, int64_t prompt_tokens_left) const {
  const int64_t unread = std::ssize(request.sequences.front().unread);
  const bool is_steady = std::ssize(request.prompt.tokens) <= parts_.model.limits().steady_length;
  return request.prompt.is_read() || !is_steady ? unread
                                                : std::min(unread, std::max<int64_t>(0, prompt_tokens_left));
}

// Passes tokens through the model. Returns the requests whose sequences were read to their ends, and sets
// `logits` to those of the next token of each of these sequences.
std::vector<Generator::Request*> Generator::read(Tensor& logits) {
  std::vector<int64_t> ids, positions, samples, bounds = {0}, last_rows;
  std::vector<std::pair<Sequence*, size_t>> begun;
  std::vector<Request*> ready;
  int64_t prompt_tokens_left = parts_.prompt_tokens_per_pass;
  for (size_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    if (request.prompt.rows.empty() && !begin(request, std::span(requests_).first(i))) continue;
    const int64_t count = tokens_to_read(request, prompt_tokens_left);
    if (count == 0) continue;
    for (Sequence& sequence : request.sequences) {
      const size_t before = sequence.rows.size();
      const auto rows = cache_.take(count);
      sequence.rows.insert(sequence.rows.end(), rows.begin(), rows.end());
      for (int64_t token = 0; token < count; ++token) {
        ids.push_back(sequence.unread[static_cast<size_t>(token)]);
        positions.push_back(static_cast<int64_t>(before) + token);
        samples.push_back(std::ssize(bounds) - 1);
      }
      sequence.unread.erase(sequence.unread.begin(), sequence.unread.begin() + count);
      bounds.push_back(std::ssize(ids));
      begun.emplace_back(&sequence, before);
      if (sequence.unread.empty()) last_rows.push_back(bounds.back() - 1);
      if (request.prompt.is_read()) continue;
      prompt_tokens_left -= count;
      request.prompt.rows.insert(request.prompt.rows.end(), rows.begin(), rows.end());
      cache_.share(rows);
    }
    if (request.sequences.front().unread.empty()) ready.push_back(&request);
  }
  std::vector<nn::KeyValueCache::Sequence> sequences;
  for (const auto& [sequence, before] : begun) sequences.push_back({sequence->rows, before});
  cache_.begin_pass(sequences);
  const auto on_device = [&](const std::vector<int64_t>& values) { return at::tensor(values).to(device_); };
  Batch batch;
  batch.tensors = {{"input_ids", on_device(ids)},
                   {"position_ids", on_device(positions)},
                   {"samples", on_device(samples)},
                   {"cu_seqlens", on_device(bounds)}};
  batch.count = std::ssize(sequences);
  if (parts_.before_pass) parts_.before_pass();
  const Tensor hidden = parts_.model.forward(batch, {.kernels = parts_.kernels, .cache = &cache_});
  if (!ready.empty())
    logits =
        decoder_->logits(hidden.index_select(0, on_device(last_rows))).to(at::kCPU, at::kFloat).contiguous();
  return ready;
}

// Gives the request its sequences for the next pass.
void Generator::advance(Request& request, const Tensor& logits) {
  if (std::isnan(logits.amax().item<float>()))
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

void Generator::end(Request& request) {
  ended_[request.index] = request.search->results();
  cache_.release(last_.rows);
  last_ = std::move(request.prompt);
}

void Generator::pass() {
  const at::NoGradGuard no_grad;
  Tensor logits;
  int64_t row = 0;
  for (Request* request : read(logits)) {
    const int64_t rows = std::ssize(request->sequences);
    advance(*request, logits.slice(0, row, row + rows));
    row += rows;
    if (request->sequences.empty()) end(*request);
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
