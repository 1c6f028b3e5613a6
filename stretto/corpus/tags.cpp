#include "stretto/corpus/tags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/text/utf8.h"

namespace stretto::corpus {
namespace {

constexpr std::array<std::pair<TagScheme, std::string_view>, 6> scheme_names = {
    {{TagScheme::iob1, "IOB1"},
     {TagScheme::iob2, "IOB2"},
     {TagScheme::ioe1, "IOE1"},
     {TagScheme::ioe2, "IOE2"},
     {TagScheme::iobes, "IOBES"},
     {TagScheme::bilou, "BILOU"}}};

// Prefixes as a set of bits.
constexpr unsigned I = 1, O = 2, B = 4, E = 8, S = 16, U = 32, L = 64, any = 127;

unsigned prefix_of(std::string_view tag) {
  constexpr std::string_view letters = "IOBESUL";
  const size_t found = tag.empty() ? std::string_view::npos : letters.find(tag.front());
  if (found == std::string_view::npos) {
    throw DataError(
        "\"{}\" is not a tag of a known scheme; expected O or one of I-, B-, E-, S-, U-, L- and a type", tag);
  }
  return 1U << found;
}

enum class Types { same, different, either };

// The previous word's prefix, this word's prefix, and how their types relate.
struct Pattern {
  unsigned previous, current;
  Types types;
};

struct Rules {
  unsigned prefixes;
  std::vector<Pattern> start, inside, end;
};

// The rules of seqeval 1.2's scheme classes for the begin, inside and end of spans.
const Rules& rules_of(TagScheme scheme) {
  using enum Types;
  static const Rules iob1 = {
      I | O | B,
      {{O, I, either}, {I, I, different}, {B, I, either}, {I, B, same}, {B, B, same}},
      {{B, I, same}, {I, I, same}},
      {{I, I, different}, {I, O, either}, {I, B, either}, {B, O, either}, {B, I, different}, {B, B, same}}};
  static const Rules iob2 = {I | O | B,
                             {{any, B, either}},
                             {{B, I, same}, {I, I, same}},
                             {{I, O | B, either}, {I, I, different}, {B, O | B, either}, {B, I, different}}};
  static const Rules ioe1 = {
      I | O | E,
      {{O, I, either}, {I, I, different}, {E, I, either}, {E, E, same}},
      {{I, I, same}, {I, E, same}},
      {{I, I, different}, {I, O, either}, {I, E, different}, {E, I, same}, {E, E, same}}};
  static const Rules ioe2 = {I | O | E,
                             {{O, I | E, either}, {E, I | E, either}, {I, I | E, different}},
                             {{I, E | I, same}},
                             {{E, any, either}}};
  static const Rules iobes = {
      I | O | B | E | S, {{any, B | S, either}}, {{B | I, I | E, same}}, {{S | E, any, either}}};
  static const Rules bilou = {
      I | O | B | L | U, {{any, B | U, either}}, {{B | I, I | L, same}}, {{U | L, any, either}}};
  switch (scheme) {
    case TagScheme::iob1:
      return iob1;
    case TagScheme::iob2:
      return iob2;
    case TagScheme::ioe1:
      return ioe1;
    case TagScheme::ioe2:
      return ioe2;
    case TagScheme::iobes:
      return iobes;
    case TagScheme::bilou:
      return bilou;
  }
  throw Error("unknown tag scheme {}", static_cast<int>(scheme));
}

// The type in strict mode: the text after the prefix, without leading and trailing dashes.
std::string_view stripped_type(std::string_view tag) {
  tag.remove_prefix(1);
  while (tag.starts_with('-')) tag.remove_prefix(1);
  while (tag.ends_with('-')) tag.remove_suffix(1);
  return tag.empty() ? "_" : tag;
}

struct StrictTag {
  unsigned prefix = O;
  std::string_view type = "_";
};

bool matches(const std::vector<Pattern>& patterns, const StrictTag& previous, const StrictTag& current) {
  return std::ranges::any_of(patterns, [&](const Pattern& pattern) {
    if ((previous.prefix & pattern.previous) == 0 || (current.prefix & pattern.current) == 0) return false;
    if (pattern.types == Types::either) return true;
    return (previous.type == current.type) == (pattern.types == Types::same);
  });
}

bool ends_between(char previous, char current, bool same_type) {
  if (previous == 'E' || previous == 'S') return true;
  const bool open = previous == 'B' || previous == 'I';
  if (open && (current == 'B' || current == 'S' || current == 'O')) return true;
  return previous != 'O' && previous != '.' && !same_type;
}

bool starts_between(char previous, char current, bool same_type) {
  if (current == 'B' || current == 'S') return true;
  const bool closed = previous == 'E' || previous == 'S' || previous == 'O';
  if (closed && (current == 'E' || current == 'I')) return true;
  return current != 'O' && current != '.' && !same_type;
}

}  // namespace

TagScheme parse_tag_scheme(std::string_view name, const OptionNames& names) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper == "BIO") upper = "IOB2";
  if (upper == "BIOES") upper = "IOBES";
  std::vector<std::string> known;
  for (const auto& [scheme, text] : scheme_names) {
    if (upper == text) return scheme;
    known.emplace_back(text);
  }
  throw ConfigError("{}: \"{}\" is not a tag scheme{}; tag schemes are {}", names("scheme"), name,
                    did_you_mean(upper, known), fmt::join(known, ", "));
}

std::string_view name_of(TagScheme scheme) {
  return std::ranges::find(scheme_names, scheme, &std::pair<TagScheme, std::string_view>::first)->second;
}

std::string_view type_of_tag(std::string_view tag) {
  size_t prefix = std::min<size_t>(1, tag.size());  // bytes of the first character
  while (prefix < tag.size() && !text::is_lead_byte(tag[prefix])) ++prefix;
  std::string_view rest = tag.substr(prefix);
  if (const size_t dash = rest.find('-'); dash != std::string_view::npos) rest.remove_prefix(dash + 1);
  return rest.empty() ? "_" : rest;
}

std::vector<Span> lenient_spans(std::span<const std::string> tags) {
  std::vector<Span> spans;
  char previous = 'O';
  std::string_view previous_type = "_";
  size_t begin = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const std::string_view tag = i < tags.size() && !tags[i].empty() ? std::string_view(tags[i]) : "O";
    const std::string_view type = type_of_tag(tag);
    if (ends_between(previous, tag.front(), previous_type == type))
      spans.push_back({begin, i, std::string(previous_type)});
    if (starts_between(previous, tag.front(), previous_type == type)) begin = i;
    previous = tag.front();
    previous_type = type;
  }
  return spans;
}

std::vector<Span> strict_spans(std::span<const std::string> tags, TagScheme scheme) {
  const Rules& rules = rules_of(scheme);
  std::vector<StrictTag> words;
  for (const std::string& tag : tags) {
    words.push_back({prefix_of(tag), stripped_type(tag)});
    if ((words.back().prefix & rules.prefixes) == 0)
      throw DataError("the tag \"{}\" does not occur in {}; choose another scheme", tag, name_of(scheme));
  }
  words.emplace_back();  // a word outside any span, which ends the last one
  std::vector<Span> spans;
  StrictTag previous;
  for (size_t i = 0; i < words.size();) {
    size_t next = i + 1;
    if (matches(rules.start, previous, words[i])) {
      while (next < words.size() && matches(rules.inside, words[next - 1], words[next])) ++next;
      if (next < words.size() && matches(rules.end, words[next - 1], words[next]))
        spans.push_back({i, next, std::string(words[i].type)});
    }
    i = next;
    previous = words[i - 1];
  }
  return spans;
}

TagScheme detect_tag_scheme(std::span<const std::vector<std::string>> sentences) {
  unsigned found = 0;
  for (const auto& tags : sentences)
    for (const std::string& tag : tags) found |= prefix_of(tag);
  static const std::vector<std::pair<TagScheme, std::set<unsigned>>> known = {
      {TagScheme::iob2, {I | O | B, I | B, B | O, B}},
      {TagScheme::ioe2, {I | O | E, I | E, E | O, E}},
      {TagScheme::iobes,
       {I | O | B | E | S, I | B | E | S, I | O | B | E, O | B | E | S, I | B | E, B | E | S, O | B | E,
        B | E, S}},
      {TagScheme::bilou,
       {I | O | B | L | U, I | B | L | U, I | O | B | L, O | B | L | U, I | B | L, B | L | U, O | B | L,
        B | L, U}}};
  for (const auto& [scheme, sets] : known)
    if (sets.contains(found)) return scheme;
  std::string letters;
  for (unsigned bit = 0; bit < 7; ++bit)
    if ((found >> bit & 1U) != 0) letters += fmt::format("{}{}", letters.empty() ? "" : ", ", "IOBESUL"[bit]);
  throw DataError(
      "the prefixes of the gold tags are {}: no scheme can be inferred from them; name it: IOB1, IOB2, IOE1, IOE2, IOBES or BILOU",
      letters.empty() ? "none" : letters);
}

std::vector<std::string> write_tags(std::span<const Span> spans, size_t length, TagScheme scheme) {
  std::vector<std::string> tags(length, "O");
  const Span* previous = nullptr;
  for (const Span& span : spans) {
    const bool touches = previous != nullptr && previous->end == span.begin && previous->type == span.type;
    for (size_t i = span.begin; i < span.end; ++i) {
      const bool first = i == span.begin, last = i + 1 == span.end;
      char prefix = 'I';
      switch (scheme) {
        case TagScheme::iob1:
          if (first && touches) prefix = 'B';
          break;
        case TagScheme::iob2:
          if (first) prefix = 'B';
          break;
        case TagScheme::ioe1:
          break;  // handled below: depends on the next span
        case TagScheme::ioe2:
          if (last) prefix = 'E';
          break;
        case TagScheme::iobes:
          prefix = first && last ? 'S' : first ? 'B' : last ? 'E' : 'I';
          break;
        case TagScheme::bilou:
          prefix = first && last ? 'U' : first ? 'B' : last ? 'L' : 'I';
          break;
      }
      tags[i] = span.type == "_" ? std::string(1, prefix) : fmt::format("{}-{}", prefix, span.type);
    }
    if (scheme == TagScheme::ioe1 && touches) tags[previous->end - 1][0] = 'E';
    previous = &span;
  }
  return tags;
}

}  // namespace stretto::corpus
