#include "stretto/text/replace_normalizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8

#include <array>
#include <optional>

#include <fmt/format.h>
#include <pcre2.h>

#include "stretto/base/error.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

struct Match {
  size_t begin;
  size_t end;
};

PCRE2_SPTR bytes_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Throws for a pattern whose meaning in the Ruby syntax of Hugging Face tokenizers differs from PCRE2's.
void require_same_meaning(const std::string& pattern, const std::string& place) {
  for (const char* part : {"\\h", "\\H", "(?m", "&&", "\\Z"}) {
    if (pattern.find(part) != std::string::npos)
      throw DataError("{}: \"{}\": {} in a regular expression is not available", place, pattern, part);
  }
}

}  // namespace

class ReplaceNormalizer::Expression {
 public:
  using Buffer = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

  Expression(const std::string& pattern, const std::string& place)
      : place_(place), code_(nullptr, pcre2_code_free) {
    require_same_meaning(pattern, place);
    int error = 0;
    PCRE2_SIZE where = 0;
    // As in Ruby, ^ and $ match at the ends of lines.
    code_.reset(pcre2_compile(bytes_of(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                              &error, &where, nullptr));
    if (code_ == nullptr) {
      throw DataError("{}: \"{}\" is not a regular expression: {} (at byte {})", place, pattern,
                      message(error), where);
    }
  }

  Buffer buffer() const {
    return {pcre2_match_data_create_from_pattern(code_.get(), nullptr), pcre2_match_data_free};
  }

  // The first match at or after `from`. The first search checks that the text is UTF-8.
  std::optional<Match> find(std::string_view text, size_t from, const Buffer& buffer) const {
    const uint32_t options = from > 0 ? PCRE2_NO_UTF_CHECK : 0;
    const int result =
        pcre2_match(code_.get(), bytes_of(text), text.size(), from, options, buffer.get(), nullptr);
    if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (result < 0) {
      throw DataError("{}: the search in a text of {} bytes failed: {}", place_, text.size(),
                      message(result));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(buffer.get());
    return Match{ends[0], ends[1]};
  }

 private:
  std::string place_;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code_;
};

ReplaceNormalizer::ReplaceNormalizer(std::string pattern, bool is_regex, std::string content,
                                     const std::string& place)
    : pattern_(std::move(pattern)), content_(std::move(content)) {
  bool matches_nothing = pattern_.empty();
  if (is_regex) {
    expression_ = std::make_unique<Expression>(pattern_, place);
    matches_nothing = matches_nothing || expression_->find("", 0, expression_->buffer()).has_value();
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
  const auto buffer =
      expression_ ? expression_->buffer() : Expression::Buffer(nullptr, pcre2_match_data_free);
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
