#include "stretto/token_corpus/json_text.h"

#include <cstdint>

#include "stretto/text/utf8.h"

namespace stretto::token_corpus {
namespace {

// One pass over JSON (RFC 8259). The functions move past the element that they are named after, or return
// false.
class JsonPass {
 public:
  explicit JsonPass(std::string_view text) : text_(text) {}

  bool ends() {
    skip_space();
    return at_ == text_.size();
  }

  bool takes(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Writes the content to `out` unless it is null.
  bool string(std::string* out) {
    if (!takes('"')) return false;
    while (true) {
      const size_t begin = at_;
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
      if (out != nullptr) out->append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return false;
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c != '\\' || !escape(out)) return false;
    }
  }

  bool value(int depth) {
    skip_space();
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '"':
        return string(nullptr);
      case '{':
        return depth > 0 && object(depth - 1);
      case '[':
        return depth > 0 && list(depth - 1);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

 private:
  static bool is_plain(char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; }
  bool at_digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  bool word(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  bool digits() {
    if (!at_digit()) return false;
    while (at_digit()) ++at_;
    return true;
  }

  // Refuses numbers with exponents that a parser may refuse.
  bool number() {
    if (text_[at_] == '-') ++at_;
    const size_t begin = at_;
    if (!digits() || (text_[begin] == '0' && at_ > begin + 1) || at_ > begin + 300) return false;
    if (at_ == text_.size() || text_[at_] != '.') return true;
    ++at_;
    return digits();
  }

  bool object(int depth) {
    takes('{');
    if (takes('}')) return true;
    do {
      if (!string(nullptr) || !takes(':') || !value(depth)) return false;
    } while (takes(','));
    return takes('}');
  }

  bool list(int depth) {
    takes('[');
    if (takes(']')) return true;
    do {
      if (!value(depth)) return false;
    } while (takes(','));
    return takes(']');
  }

  bool hexadecimal(uint32_t& unit) {
    if (text_.size() - at_ < 4) return false;
    unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const char letter = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        unit = unit * 16 + static_cast<uint32_t>(c - '0');
      } else if (letter >= 'a' && letter <= 'f') {
        unit = unit * 16 + static_cast<uint32_t>(letter - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }

  // Reads an escape sequence after its backslash.
  bool escape(std::string* out) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c == 'u') return unicode_escape(out);
    constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    const size_t index = names.find(c);
    if (index == std::string_view::npos) return false;
    if (out != nullptr) out->push_back(characters[index]);
    return true;
  }

  bool unicode_escape(std::string* out) {
    uint32_t unit = 0;
    if (!hexadecimal(unit) || (unit >= 0xDC00 && unit < 0xE000)) return false;
    if (unit >= 0xD800 && unit < 0xDC00) {
      uint32_t low = 0;
      if (!word("\\u") || !hexadecimal(low) || low < 0xDC00 || low >= 0xE000) return false;
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    if (out != nullptr) text::append_utf8(*out, unit);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::string_view> find_json_text(std::string_view json, std::string_view key,
                                               std::string& buffer) {
  constexpr int most_depth = 63;
  if (text::find_invalid_utf8(json) != json.size()) return std::nullopt;
  JsonPass pass(json);
  std::string name;
  bool found = false;
  if (!pass.takes('{')) return std::nullopt;
  do {
    name.clear();
    if (!pass.string(&name) || !pass.takes(':')) return std::nullopt;
    if (name == key) {
      buffer.clear();
      if (found || !pass.string(&buffer)) return std::nullopt;
      found = true;
    } else if (!pass.value(most_depth)) {
      return std::nullopt;
    }
  } while (pass.takes(','));
  if (!found || !pass.takes('}') || !pass.ends()) return std::nullopt;
  return buffer;
}

}  // namespace stretto::token_corpus
