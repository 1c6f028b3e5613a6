#include "stretto/data/features/questions.h"

#include <algorithm>

#include "stretto/text/utf8.h"

namespace stretto::data {

std::string_view question_text(std::string_view question) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!question.empty() && is_space(question.front())) question.remove_prefix(1);
  return question;
}

std::vector<text::Encoding> question_windows(const text::Tokenizer& tokenizer, std::string_view question,
                                             std::string_view context, const WindowSizes& sizes) {
  return tokenizer.encode_pair_windows(question_text(question), context,
                                       {.special_tokens = true,
                                        .max_length = static_cast<size_t>(sizes.max_length),
                                        .truncation = text::Truncation::only_second,
                                        .stride = static_cast<size_t>(sizes.stride)});
}

std::pair<size_t, size_t> context_tokens(const text::Encoding& window) {
  const auto& texts = window.sequence_ids;
  const auto first = std::ranges::find(texts, 1);
  if (first == texts.end()) return {0, 0};
  const auto last = std::find(texts.rbegin(), texts.rend(), 1).base();
  return {static_cast<size_t>(first - texts.begin()), static_cast<size_t>(last - texts.begin())};
}

CodePointIndex::CodePointIndex(std::string_view text) : text_(text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text::is_lead_byte(text[i])) begins_.push_back(i);
  begins_.push_back(text.size());
}

}  // namespace stretto::data
