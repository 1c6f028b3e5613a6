#include "stretto/text/bert_normalizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

constexpr unsigned char dropped = 0xFF;
constexpr char32_t replacement_character = 0xFFFD;

bool is_dropped_by_cleaning(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == 0 || c == replacement_character || is_control(c);
}

// Writes one piece of text. Characters arrive in order; with strip_accents they are decomposed canonically,
// and marks are kept here until the next character of class 0 fixes their order.
class Writer {
 public:
  Writer(const BertNormalizerOptions& options, NormalizedText& out) : options_(options), out_(out) {}

  // Writes a character that is neither decomposed nor reordered.
  void starter(char32_t c, uint32_t character) {
    flush();
    write(c, character);
  }

  void character(char32_t c, uint32_t character) {
    if (!options_.strip_accents) return write(c, character);
    const CodePoints parts = decompose(c);
    if (parts.size == 1 && combining_class(parts.values[0]) == 0) {
      if (is_nonspacing_mark(parts.values[0])) return flush();
      return starter(parts.values[0], character);
    }
    for (int i = 0; i < parts.size; ++i) {
      const uint8_t order = combining_class(parts.values[i]);
      if (order == 0) flush();
      if (i == 0) sources_.push_back(character);
      waiting_.push_back({parts.values[i], order, i == 0});
      if (order == 0) flush();
    }
  }

  void flush() {
    if (waiting_.empty()) return;
    if (waiting_.size() > 1) {
      std::stable_sort(waiting_.begin(), waiting_.end(),
                       [](const Part& a, const Part& b) { return a.order < b.order; });
    }
    // After reordering, tokenizers assigns sources by position: the first part of a decomposition takes the
    // next source, and each further part shares the source of the previous one.
    for (const Part& part : waiting_) {
      if (part.opens) source_ = sources_[next_source_++];
      if (!is_nonspacing_mark(part.value)) write(part.value, source_);
    }
    waiting_.clear();
    sources_.clear();
    next_source_ = 0;
  }

 private:
  struct Part {
    char32_t value;
    uint8_t order;
    bool opens;
  };

  void write(char32_t c, uint32_t character) {
    const size_t before = out_.bytes.size();
    if (options_.lowercase) {
      const CodePoints lower = lower_case(c);
      for (int i = 0; i < lower.size; ++i) append_utf8(out_.bytes, lower.values[i]);
    } else {
      append_utf8(out_.bytes, c);
    }
    out_.characters.insert(out_.characters.end(), out_.bytes.size() - before, character);
  }

  const BertNormalizerOptions& options_;
  NormalizedText& out_;
  std::vector<Part> waiting_;
  std::vector<uint32_t> sources_;
  size_t next_source_ = 0;
  uint32_t source_ = 0;
};

}  // namespace

BertNormalizer::BertNormalizer(const BertNormalizerOptions& options) : options_(options) {
  for (unsigned char c = 0; c < 128; ++c) {
    const bool drop = options.clean_text && is_dropped_by_cleaning(c);
    const bool space = options.clean_text && is_whitespace(c);
    const bool lower = options.lowercase && c >= 'A' && c <= 'Z';
    ascii_[c] = drop ? dropped : space ? ' ' : lower ? static_cast<unsigned char>(c + 32) : c;
  }
}

void BertNormalizer::normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const {
  out.bytes.reserve(out.bytes.size() + text.size());
  out.characters.reserve(out.characters.size() + text.size());
  Writer writer(options_, out);
  uint32_t character = first_character;
  for (size_t position = 0; position < text.size(); ++character) {
    if (is_ascii(text[position])) {
      const unsigned char c = ascii_[static_cast<unsigned char>(text[position++])];
      if (c == dropped) continue;
      writer.flush();
      out.bytes.push_back(static_cast<char>(c));
      out.characters.push_back(character);
      continue;
    }
    const char32_t c = next_code_point(text, position);
    if (options_.clean_text && is_dropped_by_cleaning(c)) continue;
    const bool separate = options_.handle_chinese_chars && is_chinese(c);
    if (separate) writer.starter(' ', character);
    writer.character(options_.clean_text && is_whitespace(c) ? ' ' : c, character);
    if (separate) writer.starter(' ', character);
  }
  writer.flush();
}

std::string BertNormalizer::description() const {
  return fmt::format("{} {} {} {}", options_.clean_text, options_.handle_chinese_chars,
                     options_.strip_accents, options_.lowercase);
}

}  // namespace stretto::text
