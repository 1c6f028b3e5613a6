#pragma once

#include <string_view>

namespace stretto::data {

// A question as models read it, in training and in serving: without leading white space, as run_qa. Some
// questions of SQuAD have much of it, which counts as length.
inline std::string_view without_leading_space(std::string_view question) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!question.empty() && is_space(question.front())) question.remove_prefix(1);
  return question;
}

}  // namespace stretto::data
