#include "stretto/generate/text_stream.h"

#include <algorithm>

namespace stretto::generate {
namespace {

// U+FFFD, which replaces bytes that are not a character
constexpr std::string_view replacement = "\xEF\xBF\xBD";

// The length of the longest suffix of `text` that is a prefix of `stop`.
size_t overlap(std::string_view text, std::string_view stop) {
  size_t length = std::min(text.size(), stop.size());
  while (!text.ends_with(stop.substr(0, length))) --length;
  return length;
}

}  // namespace

TextStream::TextStream(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stop)
    : tokenizer_(tokenizer),
      prompt_(prompt.begin(), prompt.end()),
      prompt_text_(tokenizer.decode(prompt)),
      stop_(std::move(stop)) {}

// Decoders may treat the first token of a text specially, so the prompt is decoded with the new tokens.
std::string TextStream::decode(std::span<const int32_t> new_tokens) const {
  std::vector<int32_t> all = prompt_;
  all.insert(all.end(), new_tokens.begin(), new_tokens.end());
  const std::string whole = tokenizer_.decode(all);
  return whole.starts_with(prompt_text_) ? whole.substr(prompt_text_.size()) : tokenizer_.decode(new_tokens);
}

size_t TextStream::first_stop(std::string_view text) const {
  size_t first = std::string_view::npos;
  for (const std::string& stop : stop_) first = std::min(first, text.find(stop));
  return first;
}

std::string TextStream::text(std::span<const int32_t> new_tokens) const {
  const std::string all = decode(new_tokens);
  return all.substr(0, first_stop(all));
}

bool TextStream::is_stopped(std::span<const int32_t> new_tokens) const {
  return !stop_.empty() && first_stop(decode(new_tokens)) != std::string_view::npos;
}

std::string TextStream::settled(std::span<const int32_t> new_tokens) const {
  std::string shown = text(new_tokens);
  while (shown.ends_with(replacement)) shown.resize(shown.size() - replacement.size());
  size_t held = 0;
  for (const std::string& stop : stop_) held = std::max(held, overlap(shown, stop));
  shown.resize(shown.size() - held);
  return shown;
}

}  // namespace stretto::generate
