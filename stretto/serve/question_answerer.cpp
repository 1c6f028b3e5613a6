#include "stretto/serve/question_answerer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/data/features/questions.h"
#include "stretto/data/packing.h"
#include "stretto/model_config/heads.h"
#include "stretto/text/utf8.h"

namespace stretto {
namespace {

// In tokens; Hugging Face's defaults.
constexpr int64_t longest_window = 384, largest_stride = 128, longest_answer = 15;
constexpr int64_t most_answers = 1000;
constexpr size_t tokens_at_once = 2048;  // fills the caches, and products are wide enough

// Probabilities over [CLS] and the tokens of the context, 0 for others.
std::vector<double> probabilities(const Tensor& logits, const text::Encoding& window) {
  const Tensor values = logits.contiguous();
  const double* const score = values.const_data_ptr<double>();
  const auto [first, last] = data::context_tokens(window);
  std::vector<double> result(window.size());
  double highest = score[0], sum = 0;
  for (size_t t = first; t < last; ++t) highest = std::max(highest, score[t]);
  const auto add = [&](size_t t) { sum += result[t] = std::exp(score[t] - highest); };
  add(0);
  for (size_t t = first; t < last; ++t) add(t);
  for (double& value : result) value /= sum;
  return result;
}

// The code points of the words that tokens first to last belong to.
text::Offset whole_words(const text::Encoding& window, size_t first, size_t last) {
  const auto same_word = [&](size_t a, size_t b) {
    return window.sequence_ids[a] == 1 && window.sequence_ids[b] == 1 &&
           window.word_ids[a] == window.word_ids[b];
  };
  while (first > 0 && same_word(first - 1, first)) --first;
  while (last + 1 < window.size() && same_word(last, last + 1)) ++last;
  return {window.offsets[first].begin, window.offsets[last].end};
}

// Before the model is loaded.
const PipelineOptions& checked(const PipelineOptions& options) {
  const int64_t answers = options.top_k.value_or(1);
  if (answers < 1 || answers > most_answers)
    throw ConfigError("{}: question answering gives from 1 to {} answers, not all", options.names("top_k"),
                      most_answers);
  return options;
}

}  // namespace

QuestionAnswerer::QuestionAnswerer(const std::filesystem::path& folder, const PipelineOptions& options,
                                   const ModelRegistry& models)
    : served_(folder, heads::question_answering, checked(options), models),
      top_k_(options.top_k.value_or(1)),
      null_answers_(options.handle_impossible_answer) {}

std::vector<text::Encoding> QuestionAnswerer::windows(const PipelineInput& input) const {
  const std::string& context = input.text_pair.value();
  const std::string_view asked = data::question_text(input.text);
  if (asked.empty() || context.empty())
    throw DataError("an empty {}; expected a question and its context",
                    asked.empty() ? "question" : "context");
  const int64_t most = std::min(longest_window, served_.model->limits().max_length);
  // At most half of the room that the question leaves.
  const auto question = std::ssize(served_.tokenizer.encode(asked, {.special_tokens = false}).ids);
  const int64_t stride = std::clamp<int64_t>((most - question) / 2 - 2, 0, largest_stride);
  try {
    return data::question_windows(served_.tokenizer, asked, context, {most, stride});
  } catch (const Error& error) {
    throw DataError("the question \"{}\" has {} tokens, which leaves too few of {} for its context ({})",
                    asked.substr(0, 60), question, most, error.what());
  }
}

// Of all inputs, in order, scored in batches.
std::vector<QuestionAnswerer::Window> QuestionAnswerer::scored_windows(
    std::span<const PipelineInput> inputs) const {
  std::vector<Window> all;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (text::Encoding& encoding : windows(inputs[i])) all.push_back({i, std::move(encoding), {}});
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    size_t tokens = 0;
    do tokens += all[end++].encoding.size();
    while (end < all.size() && tokens + all[end].encoding.size() <= tokens_at_once);
    score(std::span(all).subspan(begin, end - begin), inputs);
  }
  return all;
}

// One batch of windows.
void QuestionAnswerer::score(std::span<Window> windows, std::span<const PipelineInput> inputs) const {
  at::NoGradGuard no_grad;
  std::vector<data::TokenSequence> sequences;
  for (const Window& window : windows)
    sequences.push_back({window.encoding.ids, window.encoding.type_ids, std::ssize(sequences)});
  const Batch batch = data::pack_sequences(sequences, served_.pad_to_multiple_of);
  const Tensor logits = served_.model->forward(batch, {}).to(at::kDouble).contiguous();
  int64_t row = 0;
  for (Window& window : windows) {
    const auto length = static_cast<int64_t>(window.encoding.size());
    window.logits = logits.slice(0, row, row + length);
    served_.require_finite(window.logits, inputs[window.input].text);
    row += length;
  }
}

// The best answers in the windows of one input.
std::vector<FoundAnswer> QuestionAnswerer::answers(std::span<const Window> windows,
                                                   const PipelineInput& input) const {
  struct Candidate {
    double score;
    size_t start, end;
  };
  std::string buffer;
  const data::CodePointIndex context(text::replace_invalid_utf8(*input.text_pair, buffer));
  std::vector<FoundAnswer> found;
  std::vector<Candidate> candidates;
  double null_score = 1;  // the least one of all windows
  for (const auto& [_, window, logits] : windows) {
    const auto starts = probabilities(logits.select(1, 0), window),
               ends = probabilities(logits.select(1, 1), window);
    null_score = std::min(null_score, starts[0] * ends[0]);
    candidates.clear();
    for (size_t start = 1; start < window.size(); ++start) {
      if (starts[start] == 0) continue;
      for (size_t end = start; end < std::min<size_t>(window.size(), start + longest_answer); ++end)
        if (const double score = starts[start] * ends[end]; score != 0)
          candidates.push_back({score, start, end});
    }
    std::ranges::stable_sort(candidates, std::greater{}, &Candidate::score);
    // Only the best ones of each window can be among the best ones of all.
    std::set<std::pair<int64_t, int64_t>> here;
    for (const auto& [score, start, end] : candidates) {
      const auto [begin, stop] = whole_words(window, start, end);
      if (!here.emplace(begin, stop).second) continue;
      const auto same = std::ranges::find_if(found, [&, first = begin, last = stop](const FoundAnswer& one) {
        return one.begin == first && one.end == last;
      });
      if (same != found.end()) {
        same->score = std::max(same->score, score);
      } else {
        found.push_back({std::string(context.slice(begin, stop)), score, begin, stop});
      }
      if (std::ssize(here) == top_k_) break;
    }
  }
  if (null_answers_) found.push_back({.text = "", .score = null_score});
  std::ranges::stable_sort(found, std::greater{}, &FoundAnswer::score);
  if (std::ssize(found) > top_k_) found.resize(static_cast<size_t>(top_k_));
  return found;
}

std::vector<nlohmann::ordered_json> QuestionAnswerer::predict(std::span<const PipelineInput> inputs,
                                                              const std::string& output) const {
  if (output != "label" && output != "logits" && output != "pipeline")
    throw ConfigError("output: \"{}\" is not one of label, logits, pipeline for question answering", output);
  const std::vector<Window> windows = scored_windows(inputs);
  std::vector<nlohmann::ordered_json> records;
  size_t begin = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t end = begin;
    while (end < windows.size() && windows[end].input == i) ++end;
    const auto own = std::span(windows).subspan(begin, end - begin);
    begin = end;
    nlohmann::ordered_json record = {{"question", inputs[i].text}};
    if (output == "logits") {
      const text::Encoding& window = own.front().encoding;
      const double* const values = own.front().logits.const_data_ptr<double>();
      record["tokens"] = nlohmann::ordered_json::array();
      for (size_t t = 0; t < window.size(); ++t) {
        record["tokens"].push_back({{"word", served_.tokenizer.token(window.ids[t]).value_or("?")},
                                    {"start_logit", values[2 * t]},
                                    {"end_logit", values[2 * t + 1]}});
      }
      records.push_back(std::move(record));
      continue;
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FoundAnswer& answer : answers(own, inputs[i]))
      list.push_back(
          {{"score", answer.score}, {"start", answer.begin}, {"end", answer.end}, {"answer", answer.text}});
    nlohmann::ordered_json found = top_k_ == 1 && !list.empty() ? list.front() : std::move(list);
    if (output == "pipeline") {
      record = std::move(found);
    } else if (found.is_object()) {
      record.update(found);
    } else {
      record["answers"] = std::move(found);
    }
    records.push_back(std::move(record));
  }
  return records;
}

std::unique_ptr<Pipeline> make_question_answerer(const std::filesystem::path& folder,
                                                 const PipelineOptions& options,
                                                 const ModelRegistry& models) {
  return std::make_unique<QuestionAnswerer>(folder, options, models);
}

}  // namespace stretto
