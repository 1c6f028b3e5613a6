#include "stretto/text/precompiled_normalizer.h"

#include <cstring>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/text/graphemes.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// Fields of a unit of the trie.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1 << 9) >> 6); }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }

// Writes replacements and tracks the original character of each written one: the n-th of a replacement has
// the n-th replaced one as its source, further ones the last. Replaced characters that remain are attributed
// to the last character written, which in Hugging Face tokenizers may belong to an earlier replacement.
class ReplacementWriter {
 public:
  ReplacementWriter(uint32_t first_character, NormalizedText& out) : next_(first_character), out_(out) {}

  void copy(std::string_view ascii) {
    for (const char c : ascii) write({&c, 1}, false);
  }

  void replace(size_t old_count, std::string_view text) {
    const size_t new_count = count_code_points(text);
    size_t written = 0;
    for (size_t position = 0; position < text.size(); ++written) {
      const size_t begin = position;
      next_code_point(text, position);
      write(text.substr(begin, position - begin), written >= old_count);
    }
    if (new_count < old_count) remove(static_cast<uint32_t>(old_count - new_count));
  }

 private:
  void write(std::string_view c, bool added) {
    last_added_ = added;
    last_begin_ = out_.bytes.size();
    wrote_ = true;
    const uint32_t character = added ? next_ - 1 : next_++;
    out_.append(c, character);
  }

  void remove(uint32_t count) {
    if (!wrote_) return;
    if (last_added_) {  // its source is the first one removed
      for (size_t i = last_begin_; i < out_.characters.size(); ++i) out_.characters[i] = next_;
      last_added_ = false;
    }
    next_ += count;
  }

  uint32_t next_;  // the next original character
  NormalizedText& out_;
  size_t last_begin_ = 0;
  bool last_added_ = false;
  bool wrote_ = false;
};

}  // namespace

PrecompiledNormalizer::PrecompiledNormalizer(std::string charsmap, const std::string& place)
    : charsmap_(std::move(charsmap)) {
  uint32_t size = 0;
  if (charsmap_.size() >= sizeof(size)) std::memcpy(&size, charsmap_.data(), sizeof(size));
  if (charsmap_.size() < sizeof(size) || size % 4 != 0 || size > charsmap_.size() - sizeof(size)) {
    throw DataError("{}: not a precompiled charsmap: a trie of {} bytes in {} bytes", place, size,
                    charsmap_.size());
  }
  units_.resize(size / 4);
  if (size > 0) std::memcpy(units_.data(), charsmap_.data() + sizeof(size), size);
  texts_ = std::string_view(charsmap_).substr(sizeof(size) + size);
  if (const size_t invalid = find_invalid_utf8(texts_); invalid < texts_.size())
    throw DataError("{}: not a precompiled charsmap: its texts are not valid UTF-8 at byte {}", place,
                    invalid);
  for (size_t c = 0; c < mapped_ascii_.size(); ++c) {
    const char byte = static_cast<char>(c);
    mapped_ascii_[c] = replacement({&byte, 1}).has_value();
  }
}

// The replacement of the shortest key that is a prefix of `part`.
std::optional<std::string_view> PrecompiledNormalizer::replacement(std::string_view part) const {
  if (units_.empty()) return std::nullopt;
  size_t node = offset_of(units_[0]);
  for (const char c : part) {
    if (c == 0) return std::nullopt;
    node ^= static_cast<unsigned char>(c);
    if (node >= units_.size() || label_of(units_[node]) != static_cast<unsigned char>(c)) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const uint32_t at = value_of(units_[node]);
    if (at >= texts_.size() || !is_lead_byte(texts_[at])) return std::nullopt;
    return texts_.substr(at, texts_.find('\0', at) - at);
  }
  return std::nullopt;
}

void PrecompiledNormalizer::normalize(std::string_view text, uint32_t first_character,
                                      NormalizedText& out) const {
  ReplacementWriter writer(first_character, out);
  const auto plain = [&](size_t position) {
    return is_ascii(text[position]) && !mapped_ascii_[static_cast<unsigned char>(text[position])];
  };
  for (size_t position = 0; position < text.size();) {
    // An ASCII character before another ASCII character is a cluster, except for CR LF.
    size_t end = position;
    while (end < text.size() && plain(end) &&
           (end + 1 == text.size() || (is_ascii(text[end + 1]) && text[end] != '\r')))
      ++end;
    writer.copy(text.substr(position, end - position));
    position = end;
    if (position == text.size()) break;
    const size_t cluster_end = end_of_grapheme(text, position);
    const std::string_view cluster = text.substr(position, cluster_end - position);
    constexpr size_t longest_whole = 5;
    if (const auto found = cluster.size() <= longest_whole ? replacement(cluster) : std::nullopt) {
      writer.replace(count_code_points(cluster), *found);
      position = cluster_end;
      continue;
    }
    while (position < cluster_end) {
      const size_t begin = position;
      next_code_point(text, position);
      const std::string_view one = text.substr(begin, position - begin);
      writer.replace(1, replacement(one).value_or(one));
    }
  }
}

std::string PrecompiledNormalizer::description() const { return "precompiled " + hash128_hex(charsmap_); }

}  // namespace stretto::text
