#include "stretto/serve/question_answerer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/data/packing.h"
#include "stretto/data/question_dataset.h"
#include "stretto/text/utf8.h"

namespace stretto {
namespace {

constexpr int64_t longest_window = 384, longest_answer = 15;  // tokens; Hugging Face's defaults

// Probabilities over the tokens of the context, 0 for others. The softmax includes [CLS], as there.
std::vector<double> probabilities(const Tensor& logits, const text::Encoding& window) {
  const Tensor values = logits.contiguous();
  const double* const score = values.const_data_ptr<double>();
  std::vector<double> result(window.size());
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  const auto counts = [&](size_t t) { return t == 0 || window.sequence_ids[t] == 1; };
  for (size_t t = 0; t < window.size(); ++t)
    if (counts(t)) highest = std::max(highest, score[t]);
  for (size_t t = 0; t < window.size(); ++t)
    if (counts(t)) sum += result[t] = std::exp(score[t] - highest);
  for (double& value : result) value /= sum;
  result[0] = 0;
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

}  // namespace

QuestionAnswerer::QuestionAnswerer(const std::filesystem::path& folder, const PipelineOptions& options,
                                   const ModelRegistry& models)
    : served_(folder, Head::question_answering, options, models), top_k_(options.top_k) {}

std::vector<text::Encoding> QuestionAnswerer::windows(const PipelineInput& input) const {
  if (input.text.empty() || input.text_pair.empty())
    throw DataError("an empty {}; expected a question and its context",
                    input.text.empty() ? "question" : "context");
  const int64_t most = std::min(longest_window, served_.model->max_length());
  // At most half of the room that the question leaves.
  const auto question = std::ssize(served_.tokenizer.encode(input.text, {.special_tokens = false}).ids);
  const int64_t stride = std::clamp<int64_t>((most - question) / 2 - 2, 0, most / 3);
  try {
    return served_.tokenizer.encode_pair_windows(input.text, input.text_pair,
                                                 {.special_tokens = true,
                                                  .max_length = static_cast<size_t>(most),
                                                  .truncation = text::Truncation::only_second,
                                                  .stride = static_cast<size_t>(stride)});
  } catch (const Error& error) {
    throw DataError("the question \"{}\" has {} tokens, which leaves too few of {} for its context ({})",
                    input.text.substr(0, 60), question, most, error.what());
  }
}

Tensor QuestionAnswerer::logits(std::span<const text::Encoding> windows, const PipelineInput& input) const {
  at::NoGradGuard no_grad;
  std::vector<std::vector<uint8_t>> types;
  std::vector<data::TokenSequence> sequences;
  for (const text::Encoding& window : windows)
    types.emplace_back(window.type_ids.begin(), window.type_ids.end());
  for (size_t k = 0; k < windows.size(); ++k)
    sequences.push_back({windows[k].ids, types[k], static_cast<int64_t>(k)});
  const Tensor logits = served_.model->forward(data::pack_sequences(sequences), {}).to(at::kDouble);
  served_.require_finite(logits, input.text);
  return logits;
}

std::vector<FoundAnswer> QuestionAnswerer::answer(const PipelineInput& input) const {
  const auto all = windows(input);
  const Tensor scores = logits(all, input);
  std::string buffer;
  const data::CodePointIndex context(text::replace_invalid_utf8(input.text_pair, buffer));
  std::vector<FoundAnswer> answers;
  int64_t row = 0;
  for (const text::Encoding& window : all) {
    const auto length = std::ssize(window.ids);
    const Tensor rows = scores.slice(0, row, row + length);
    row += length;
    const auto starts = probabilities(rows.select(1, 0), window),
               ends = probabilities(rows.select(1, 1), window);
    for (int64_t start = 0; start < length; ++start) {
      if (starts[static_cast<size_t>(start)] == 0) continue;
      for (int64_t end = start; end < std::min(length, start + longest_answer); ++end) {
        const double score = starts[static_cast<size_t>(start)] * ends[static_cast<size_t>(end)];
        if (score == 0) continue;
        const auto [begin, stop] = whole_words(window, static_cast<size_t>(start), static_cast<size_t>(end));
        const auto same =
            std::ranges::find_if(answers, [&, first = begin, last = stop](const FoundAnswer& one) {
              return one.begin == first && one.end == last;
            });
        if (same != answers.end()) {
          same->score = std::max(same->score, score);
        } else {
          answers.push_back({std::string(context.slice(begin, stop)), score, begin, stop});
        }
      }
    }
    // Only the best ones of each window can be among the best ones of all.
    std::ranges::stable_sort(answers, std::greater{}, &FoundAnswer::score);
    if (std::ssize(answers) > top_k_) answers.resize(static_cast<size_t>(top_k_));
  }
  return answers;
}

std::vector<nlohmann::ordered_json> QuestionAnswerer::predict(std::span<const PipelineInput> inputs,
                                                              const std::string& output) const {
  if (output != "label" && output != "logits")
    throw ConfigError("output: \"{}\" is not one of label, logits for question answering", output);
  std::vector<nlohmann::ordered_json> records;
  for (const PipelineInput& input : inputs) {
    auto& record = records.emplace_back(nlohmann::ordered_json{{"question", input.text}});
    if (output == "logits") {
      const auto all = windows(input);
      const Tensor scores = logits(all, input).contiguous();
      const double* const values = scores.const_data_ptr<double>();
      record["tokens"] = nlohmann::ordered_json::array();
      for (size_t t = 0; t < all.front().size(); ++t) {
        record["tokens"].push_back({{"word", served_.tokenizer.token(all.front().ids[t]).value_or("?")},
                                    {"start_logit", values[2 * t]},
                                    {"end_logit", values[2 * t + 1]}});
      }
      continue;
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FoundAnswer& found : answer(input))
      list.push_back(
          {{"score", found.score}, {"start", found.begin}, {"end", found.end}, {"answer", found.text}});
    if (top_k_ == 1 && !list.empty()) {
      record.update(list.front());
    } else {
      record["answers"] = std::move(list);
    }
  }
  return records;
}

std::unique_ptr<Pipeline> make_question_answerer(const std::filesystem::path& folder,
                                                 const PipelineOptions& options,
                                                 const ModelRegistry& models) {
  return std::make_unique<QuestionAnswerer>(folder, options, models);
}

}  // namespace stretto
