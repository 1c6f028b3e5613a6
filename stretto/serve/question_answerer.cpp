#include "stretto/serve/question_answerer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/data/packing.h"
#include "stretto/model_config/heads.h"
#include "stretto/text/utf8.h"

namespace stretto::serve {
namespace {

// Hugging Face's defaults, in tokens.
constexpr int64_t longest_window = 384, largest_stride = 128, longest_answer = 15;
constexpr int64_t most_answers = 1000;
constexpr size_t tokens_at_once = 2048;  // fills the caches and makes matmuls large enough

double probability_of(const data::AnswerSpan& span) { return span.start_score * span.end_score; }

// The probabilities of [CLS], and of each token of the context.
std::vector<data::ScoredToken> probabilities(const Tensor& logits, const text::Encoding& window) {
  const Tensor values = logits.contiguous();
  const double* const score = values.const_data_ptr<double>();
  const auto [first, last] = data::context_tokens(window);
  std::vector<data::ScoredToken> result = {{0, score[0]}};
  for (size_t t = first; t < last; ++t) result.push_back({static_cast<int64_t>(t), score[t]});
  const double highest = std::ranges::max(result, {}, &data::ScoredToken::score).score;
  double sum = 0;
  for (data::ScoredToken& one : result) sum += one.score = std::exp(one.score - highest);
  for (data::ScoredToken& one : result) one.score /= sum;
  return result;
}

// The answers in one window, best first, each with the probability of its tokens in this window.
std::vector<data::AnswerSpan> answers_of_window(std::span<const data::ScoredToken> starts,
                                                std::span<const data::ScoredToken> ends) {
  if (starts.empty()) return {};
  std::vector<data::AnswerSpan> spans =
      data::answer_spans(starts, ends, {starts.front().token, starts.back().token + 1, longest_answer});
  std::erase_if(spans, [](const data::AnswerSpan& span) { return probability_of(span) == 0; });
  std::ranges::stable_sort(spans, std::greater{}, probability_of);
  return spans;
}

// The code points of the words that contain these tokens.
text::Offset whole_words(const text::Encoding& window, const data::AnswerSpan& span) {
  auto first = static_cast<size_t>(span.first), last = static_cast<size_t>(span.last);
  const auto same_word = [&](size_t a, size_t b) {
    return window.sequence_ids[a] == 1 && window.sequence_ids[b] == 1 &&
           window.word_ids[a] == window.word_ids[b];
  };
  while (first > 0 && same_word(first - 1, first)) --first;
  while (last + 1 < window.size() && same_word(last, last + 1)) ++last;
  return {window.offsets[first].begin, window.offsets[last].end};
}

// Returns the options after checking them, before the model is loaded.
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
  // The stride is at most half of the tokens that the question leaves for the context.
  const auto question = std::ssize(served_.tokenizer.encode(asked, {.special_tokens = false}).ids);
  const int64_t stride = std::clamp<int64_t>((most - question) / 2 - 2, 0, largest_stride);
  try {
    return data::question_windows(served_.tokenizer, asked, context, {most, stride});
  } catch (const Error& error) {
    throw DataError("the question \"{}\" has {} tokens, which leaves too few of {} for its context ({})",
                    asked.substr(0, 60), question, most, error.what());
  }
}

// Returns the windows of all inputs, in order, scored in batches.
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

// Scores one batch of windows.
void QuestionAnswerer::score(std::span<Window> windows, std::span<const PipelineInput> inputs) const {
  at::NoGradGuard no_grad;
  std::vector<data::TokenSequence> sequences;
  for (const Window& window : windows)
    sequences.push_back({window.encoding.ids, window.encoding.type_ids, std::ssize(sequences)});
  const Batch batch = data::pack_sequences(sequences, served_.pad_to_multiple_of);
  const Tensor logits = served_.logits(batch);
  int64_t row = 0;
  for (Window& window : windows) {
    const auto length = static_cast<int64_t>(window.encoding.size());
    window.logits = logits.slice(0, row, row + length);
    served_.require_finite(window.logits, inputs[window.input].text);
    row += length;
  }
}

// The best answers in the windows of one input.
std::vector<data::Answer> QuestionAnswerer::answers(std::span<const Window> windows,
                                                    const PipelineInput& input) const {
  std::vector<data::Answer> found;
  data::Answer null = {.score = 1};  // the lowest score of all windows
  for (const auto& [_, window, logits] : windows) {
    const auto starts = probabilities(logits.select(1, 0), window),
               ends = probabilities(logits.select(1, 1), window);
    null.score = std::min(null.score, starts[0].score * ends[0].score);
    // An answer that is not among the best of its window cannot be among the best of all.
    std::set<std::pair<int64_t, int64_t>> here;
    for (const data::AnswerSpan& span :
         answers_of_window(std::span(starts).subspan(1), std::span(ends).subspan(1))) {
      const auto [begin, end] = whole_words(window, span);
      if (!here.emplace(begin, end).second) continue;
      const double score = probability_of(span);
      const auto same = std::ranges::find_if(found, [&, first = begin, last = end](const data::Answer& one) {
        return one.begin == first && one.end == last;
      });
      if (same != found.end()) {
        same->score = std::max(same->score, score);
      } else {
        found.push_back({.begin = begin, .end = end, .score = score});
      }
      if (std::ssize(here) == top_k_) break;
    }
  }
  if (null_answers_) found.push_back(null);
  data::keep_best(found, top_k_);
  std::string buffer;
  data::read_texts(text::replace_invalid_utf8(*input.text_pair, buffer), found);
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
    for (const data::Answer& answer : answers(own, inputs[i]))
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

PipelineType question_answering_pipeline() {
  return {.name = heads::question_answering,
          .task = "question-answering",
          .outputs = {"label", "logits", "pipeline"},
          .options = {"top_k", "handle_impossible_answer"},
          .make = make_pipeline<QuestionAnswerer>};
}

}  // namespace stretto::serve
