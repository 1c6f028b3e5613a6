#include "stretto/text/unicode.h"

#include <algorithm>
#include <array>
#include <span>

#include <utf8proc.h>

#include "stretto/text/unicode_tables.h"

namespace stretto::text {
namespace {

bool contains(std::span<const CodePointRange> ranges, char32_t c) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges.begin() && c <= (after - 1)->last;
}

constexpr CodePointRange chinese_blocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                             {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                             {0x2F800, 0x2FA1F}};

constexpr CodePointRange whitespace_ranges[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

// Letters of Unicode 13.0 to 16.0 with a canonical decomposition, which do not exist in Unicode 9.0.
constexpr CodePointRange composed_later[] = {
    {0x105C9, 0x105C9}, {0x105E4, 0x105E4}, {0x11383, 0x11383}, {0x11385, 0x11385}, {0x1138E, 0x1138E},
    {0x11391, 0x11391}, {0x113C5, 0x113C8}, {0x11938, 0x11938}, {0x16121, 0x16128}, {0x16D68, 0x16D6A}};

// Characters of Unicode 10.0 to 17.0 with a decomposition by compatibility.
constexpr CodePointRange compatible_later[] = {
    {0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BA}, {0x1CCD6, 0x1CCF9}, {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// Capitals of Unicode 16.0 and 17.0: {first, last}, and the distance to the lower-case letters.
struct LowerCaseShift {
  CodePointRange range;
  int32_t shift;
};
constexpr LowerCaseShift lower_case_later[] = {
    {{0x1C89, 0x1C89}, 1},      {{0xA7CB, 0xA7CB}, 0x264 - 0xA7CB},
    {{0xA7CC, 0xA7CC}, 1},      {{0xA7CE, 0xA7CE}, 1},
    {{0xA7D2, 0xA7D2}, 1},      {{0xA7D4, 0xA7D4}, 1},
    {{0xA7DA, 0xA7DA}, 1},      {{0xA7DC, 0xA7DC}, 0x19B - 0xA7DC},
    {{0x10D50, 0x10D65}, 0x20}, {{0x16EA0, 0x16EB8}, 0x1B},
};

// Letters, marks and digits of Unicode 15.1 and 16.0.
constexpr CodePointRange word_characters_later[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
    {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC},
    {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
    {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A}, {0x13460, 0x143FA},
    {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9},
    {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D},
};

// Marks of Unicode 15.1 to 17.0.
constexpr CodePointRange grapheme_extenders_later[] = {
    {0x897, 0x897},     {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},   {0x10D69, 0x10D6D}, {0x10EFA, 0x10EFC},
    {0x113B8, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
    {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11B60, 0x11B67}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
    {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}};

CharacterKind search_kind(char32_t c) {
  if (contains(letter_ranges, c)) return CharacterKind::letter;
  if (contains(number_ranges, c)) return CharacterKind::number;
  return contains(whitespace_ranges, c) ? CharacterKind::space : CharacterKind::other;
}

CodePoints one(char32_t c) { return {{c}, 1}; }

std::span<const char32_t> only(char32_t c, Decomposition& buffer) {
  buffer[0] = c;
  return {buffer.data(), 1};
}

std::span<const char32_t> decompose(char32_t c, int options, Decomposition& buffer) {
  std::array<utf8proc_int32_t, std::tuple_size_v<Decomposition>> parts;
  int boundary = 0;
  const auto size = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                            static_cast<utf8proc_option_t>(options), &boundary);
  if (size < 1 || size > static_cast<int>(parts.size())) return only(c, buffer);
  std::copy_n(parts.begin(), size, buffer.begin());
  return {buffer.data(), static_cast<size_t>(size)};
}

}  // namespace

bool is_control(char32_t c) { return contains(control_ranges, c); }
bool is_nonspacing_mark(char32_t c) { return contains(nonspacing_mark_ranges, c); }
bool is_combining_mark(char32_t c) { return contains(combining_mark_ranges, c); }
bool is_punctuation(char32_t c) { return contains(punctuation_ranges, c); }
bool is_whitespace(char32_t c) { return contains(whitespace_ranges, c); }
bool is_chinese(char32_t c) { return contains(chinese_blocks, c); }

bool is_word_character(char32_t c) {
  // Circled and squared letters are symbols that count as alphabetic; the joiners belong to words, too.
  constexpr CodePointRange alphabetic_symbols[] = {
      {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return contains(alphabetic_symbols, c) || contains(word_characters_later, c);
  }
}

CharacterKind character_kind(char32_t c) {
  static const auto common = [] {  // the Basic Multilingual Plane
    std::array<CharacterKind, 0x10000> kinds;
    for (char32_t i = 0; i < kinds.size(); ++i) kinds[i] = search_kind(i);
    return kinds;
  }();
  return c < common.size() ? common[c] : search_kind(c);
}

bool extends_grapheme_later(char32_t c) { return contains(grapheme_extenders_later, c); }

uint8_t combining_class(char32_t c) {
  if (!contains(reordered_ranges, c)) return 0;
  return static_cast<uint8_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
}

CodePoints lower_case(char32_t c) {
  if (c == 0x130) return {{'i', 0x307}, 2};  // the only letter whose lower case is two characters
  for (const LowerCaseShift& later : lower_case_later) {
    if (c >= later.range.first && c <= later.range.last) return one(c + later.shift);
  }
  return one(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

CodePoints decompose(char32_t c) {
  Decomposition buffer;
  const auto parts = decompose(c, buffer);
  CodePoints result{{}, static_cast<int>(parts.size())};
  std::copy(parts.begin(), parts.end(), result.values.begin());
  return result;
}

std::span<const char32_t> decompose(char32_t c, Decomposition& buffer) {
  return contains(composed_later, c) ? only(c, buffer) : decompose(c, UTF8PROC_DECOMPOSE, buffer);
}

std::span<const char32_t> decompose_compatible(char32_t c, Decomposition& buffer) {
  if (contains(composed_later, c) || contains(compatible_later, c)) return only(c, buffer);
  return decompose(c, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, buffer);
}

std::optional<char32_t> compose(char32_t first, char32_t second) {
  constexpr char32_t before_hangul_finals = 0x11A7;  // utf8proc treats it as a final consonant
  if (second == before_hangul_finals) return std::nullopt;
  std::array pair = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair.data(), pair.size(), options) != 1) return std::nullopt;
  const auto composed = static_cast<char32_t>(pair[0]);
  return contains(composed_later, composed) ? std::nullopt : std::optional(composed);
}

}  // namespace stretto::text
