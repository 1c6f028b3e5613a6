#include "stretto/text/replace_normalizer.h"

#include <optional>

#include <fmt/format.h>
#include <oniguruma.h>

#include "stretto/base/error.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

struct Match {
  size_t begin;
  size_t end;
};

const OnigUChar* bytes_of(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

struct Region {
  OnigRegion* region = onig_region_new();
  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { onig_region_free(region, 1); }
};

}  // namespace

class ReplaceNormalizer::Expression {
 public:
  Expression(const std::string& pattern, const std::string& place) : place_(place) {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    OnigErrorInfo info;
    const int result = onig_new(&regex_, bytes_of(pattern), bytes_of(pattern) + pattern.size(),
                                ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
    if (result != ONIG_NORMAL)
      throw DataError("{}: \"{}\" is not a regular expression: {}", place, pattern, message(result, &info));
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression() { onig_free(regex_); }

  // The first match at `from` or behind it.
  std::optional<Match> find(std::string_view text, size_t from, Region& buffer) const {
    const OnigUChar* begin = bytes_of(text);
    const OnigUChar* end = begin + text.size();
    const auto result = onig_search(regex_, begin, end, begin + from, end, buffer.region, ONIG_OPTION_NONE);
    if (result == ONIG_MISMATCH) return std::nullopt;
    if (result < 0)
      throw DataError("{}: the search in a text of {} bytes failed: {}", place_, text.size(),
                      message(static_cast<int>(result), nullptr));
    return Match{static_cast<size_t>(buffer.region->beg[0]), static_cast<size_t>(buffer.region->end[0])};
  }

 private:
  static std::string message(int code, OnigErrorInfo* info) {
    OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
    const int size =
        info == nullptr ? onig_error_code_to_str(text, code) : onig_error_code_to_str(text, code, info);
    return {reinterpret_cast<const char*>(text), static_cast<size_t>(size)};
  }

  std::string place_;
  regex_t* regex_ = nullptr;
};

ReplaceNormalizer::ReplaceNormalizer(std::string pattern, bool is_regex, std::string content,
                                     const std::string& place)
    : pattern_(std::move(pattern)), content_(std::move(content)) {
  bool matches_nothing = pattern_.empty();
  if (is_regex) {
    expression_ = std::make_unique<Expression>(pattern_, place);
    Region buffer;
    matches_nothing = matches_nothing || expression_->find("", 0, buffer).has_value();
  }
  if (matches_nothing) {
    throw DataError(
        "{}: \"{}\" matches an empty text, which is not available; expected a pattern of at least one character",
        place, pattern_);
  }
}

ReplaceNormalizer::~ReplaceNormalizer() = default;

void ReplaceNormalizer::normalize(std::string_view text, uint32_t first_character,
                                  NormalizedText& out) const {
  Region buffer;
  const auto find = [&](size_t from) -> std::optional<Match> {
    if (expression_) return expression_->find(text, from, buffer);
    const size_t at = text.find(pattern_, from);
    return at == std::string_view::npos ? std::nullopt : std::optional(Match{at, at + pattern_.size()});
  };
  uint32_t character = first_character;
  size_t position = 0;
  while (const auto match = find(position)) {
    if (match->begin == match->end) {
      throw DataError("{}: matches an empty part of a text, which is not available", description());
    }
    const std::string_view kept = text.substr(position, match->begin - position);
    NoNormalizer().normalize(kept, character, out);
    character += static_cast<uint32_t>(count_code_points(kept));
    character +=
        static_cast<uint32_t>(count_code_points(text.substr(match->begin, match->end - match->begin)));
    out.append(content_, character - 1);
    position = match->end;
  }
  NoNormalizer().normalize(text.substr(position), character, out);
}

std::string ReplaceNormalizer::description() const {
  return fmt::format("replace {} \"{}\" \"{}\"", expression_ ? "regex" : "text", pattern_, content_);
}

}  // namespace stretto::text
