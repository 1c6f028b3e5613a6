#include "stretto/corpus/encoding.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/text/utf8.h"

namespace stretto::corpus {
namespace {

int64_t line_of(std::string_view content, size_t position) {
  return 1 + std::ranges::count(content.substr(0, position), '\n');
}

void require_text(std::string_view content, const std::string& name) {
  const bool utf16 = content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF");
  if (utf16) throw DataError("{}: the file is UTF-16; save it as UTF-8", name);
  const size_t nul = content.find('\0');
  if (nul == std::string_view::npos) return;
  throw DataError(
      "{}:{}: a NUL byte: the file is not text; expected are lines of UTF-8 (.tsv, .csv or .jsonl)", name,
      line_of(content, nul));
}

// `setting`: the name of the option that selects another encoding, for messages; "": none.
void require_utf8(std::string_view content, const std::string& name, const std::string& setting) {
  const size_t invalid = text::find_invalid_utf8(content);
  if (invalid == content.size()) return;
  const std::string otherwise = fmt::format(
      ", or set {}: latin-1 if it is ISO 8859-1, or utf-8-replace to read such bytes as U+FFFD", setting);
  throw DataError("{}:{}: byte 0x{:02x} is not UTF-8; save the file as UTF-8{}", name,
                  line_of(content, invalid), static_cast<unsigned char>(content[invalid]),
                  setting.empty() ? "" : otherwise);
}

std::string_view without_byte_order_mark(std::string_view content) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  return content;
}

}  // namespace

Encoding parse_encoding(std::string_view name, const OptionNames& names) {
  if (name == "utf-8") return Encoding::utf8;
  if (name == "utf-8-replace") return Encoding::utf8_replace;
  if (name == "latin-1") return Encoding::latin1;
  throw ConfigError("{}: \"{}\" is not known; known are utf-8, utf-8-replace and latin-1", names("encoding"),
                    name);
}

std::string_view decode_text(std::string_view content, Encoding encoding, const std::string& name,
                             std::string& buffer, const OptionNames& names) {
  require_text(content, name);
  if (encoding == Encoding::latin1) {
    if (std::ranges::all_of(content, text::is_ascii)) return content;
    buffer.clear();
    for (const char c : content) text::append_utf8(buffer, static_cast<unsigned char>(c));
    return buffer;
  }
  content = without_byte_order_mark(content);
  if (encoding == Encoding::utf8_replace) return text::replace_invalid_utf8(content, buffer);
  require_utf8(content, name, names("encoding"));
  return content;
}

std::string_view utf8_text(std::string_view content, const std::string& name) {
  require_text(content, name);
  content = without_byte_order_mark(content);
  require_utf8(content, name, "");
  return content;
}

}  // namespace stretto::corpus
