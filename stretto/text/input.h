#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

// A text to encode: whole, or already split into words (Hugging Face's is_split_into_words). A view: its
// source must outlive it.
class Input {
 public:
  Input(const char* text) : text_(text) {}
  Input(const std::string& text) : text_(text) {}
  Input(std::string_view text) : text_(text) {}
  Input(std::span<const std::string> words) : words_(words), split_(true) {}
  Input(const std::vector<std::string>& words) : words_(words), split_(true) {}

  bool is_split() const { return split_; }
  std::string_view text() const { return text_; }                // empty for words
  std::span<const std::string> words() const { return words_; }  // empty for a whole text

 private:
  std::string_view text_;
  std::span<const std::string> words_;
  bool split_ = false;
};

}  // namespace stretto::text
