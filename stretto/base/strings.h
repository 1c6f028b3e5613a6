#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

// The parts of `text` between `separator`s; always at least one.
std::vector<std::string_view> split(std::string_view text, char separator);

// The parts of `text` between ASCII white space; none of them is empty.
std::vector<std::string_view> split_words(std::string_view text);

// `text` without leading and trailing ASCII white space.
std::string_view trim(std::string_view text);

// `text` with A to Z in lower case. Other bytes, such as those of UTF-8, are unchanged.
std::string lower_case(std::string_view text);

// UTF-8 text whose control characters, which terminals interpret, are escaped: all but newlines and tabs.
// Characters below U+0080 become \x1b, or as in JSON \u001b; characters from U+0080 to U+009F become \u009b.
enum class ControlEscape { hexadecimal, json };
std::string escape_controls(std::string_view text, ControlEscape escape);

// The choice closest to `word` (Damerau-Levenshtein distance, ignoring case), if it is close enough to be a
// plausible typing error.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> choices);

// "; did you mean \"X\"?" for closest(word, choices), with up to three equally close choices, or for choices
// that begin with `word`; else "".
std::string did_you_mean(std::string_view word, std::span<const std::string> choices);

// 93.4 -> "1m 33s"; 0.25 -> "0.25s"; 7265 -> "2h 01m".
std::string human_duration(double seconds);

// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);

// counted(1, "rank") -> "1 rank"; counted(2, "rank") -> "2 ranks".
std::string counted(int64_t count, std::string_view noun);

// `word` quoted for a shell, if it contains characters other than letters, digits and a few signs.
std::string shell_word(std::string_view word);

// Convert the whole text; nullopt for invalid or empty text and on overflow.
std::optional<long long> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

}  // namespace stretto
