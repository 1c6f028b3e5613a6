#include "stretto/text/simple_normalizers.h"

#include <algorithm>

#include <fmt/format.h>

#include "stretto/text/transformation.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// Calls use(code point) for each one.
template <class Use>
void for_each_code_point(std::string_view text, Use use) {
  for (size_t position = 0; position < text.size();) use(next_code_point(text, position));
}

}  // namespace

void LowercaseNormalizer::normalize(std::string_view text, uint32_t first_character,
                                    NormalizedText& out) const {
  Transformation transformation(first_character, out);
  for_each_code_point(text, [&](char32_t c) {
    const CodePoints lower = lower_case(c);
    for (int i = 0; i < lower.size; ++i) transformation.write(lower.values[i], i > 0 ? 1 : 0);
  });
}

void StripAccentsNormalizer::normalize(std::string_view text, uint32_t first_character,
                                       NormalizedText& out) const {
  Transformation transformation(first_character, out);
  for_each_code_point(
      text, [&](char32_t c) { is_combining_mark(c) ? transformation.skip(1) : transformation.write(c, 0); });
}

void StripNormalizer::normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const {
  uint32_t leading = 0;
  size_t begin = 0;
  for (size_t position = 0; left_ && position < text.size(); begin = position, ++leading) {
    if (!is_whitespace(next_code_point(text, position))) break;
  }
  size_t end = begin;  // the end of the last character that is kept
  for (size_t position = begin; position < text.size();) {
    if (!is_whitespace(next_code_point(text, position)) || !right_) end = position;
  }
  NoNormalizer().normalize(text.substr(begin, end - begin), first_character + leading, out);
}

std::string StripNormalizer::description() const { return fmt::format("strip {} {}", left_, right_); }

void PrependNormalizer::normalize(std::string_view text, uint32_t first_character,
                                  NormalizedText& out) const {
  if (text.empty()) return;
  out.append(prefix_, first_character);
  NoNormalizer().normalize(text, first_character, out);
}

// Each step counts the characters of the output of the previous step.
void NormalizerSequence::normalize(std::string_view text, uint32_t first_character,
                                   NormalizedText& out) const {
  NormalizedText current;
  NoNormalizer().normalize(text, first_character, current);
  NormalizedText next;
  std::vector<uint32_t> origins;  // of each character of `current`
  for (const auto& step : steps_) {
    origins.clear();
    for (size_t i = 0; i < current.bytes.size(); ++i) {
      if (is_lead_byte(current.bytes[i])) origins.push_back(current.characters[i]);
    }
    next.clear();
    step->normalize(current.bytes, 0, next);
    for (uint32_t& character : next.characters) character = origins[character];
    std::swap(current, next);
  }
  out.append(current, 0, current.bytes.size());
}

std::string NormalizerSequence::description() const {
  std::string all;
  for (const auto& step : steps_) all += step->description() + ", ";
  return all;
}

bool NormalizerSequence::lowercase() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->lowercase(); });
}

}  // namespace stretto::text
