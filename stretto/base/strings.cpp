#include "stretto/base/strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/ranges.h>

#include "stretto/base/registry.h"

namespace stretto {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_words(std::string_view text) {
  constexpr std::string_view space = " \t\n\v\f\r";
  std::vector<std::string_view> words;
  for (size_t begin = 0; (begin = text.find_first_not_of(space, begin)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(space, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view space = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string escape_controls(std::string_view text, ControlEscape escape) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : ' ');
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      safe += escape == ControlEscape::json ? fmt::format("\\u{:04x}", byte) : fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F in UTF-8
      safe += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// The choices that begin with `wanted`, which completes a name: "cosine" for "CosineWithWarmup".
std::vector<std::string> beginning_with(const std::string& wanted, std::span<const std::string> choices) {
  constexpr size_t shortest_word = 4;
  std::vector<std::string> found;
  if (wanted.size() < shortest_word) return found;
  for (const std::string& choice : choices) {
    const bool is_new = std::ranges::find(found, choice) == found.end();
    if (is_new && lower_case(choice).starts_with(wanted)) found.push_back(choice);
  }
  return found;
}

// The choices at the smallest distance, in their order, if that distance is plausible for a typing error.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> choices) {
  constexpr size_t longest_word = 100;
  if (word.size() > longest_word) return {};
  const std::string wanted = lower_case(word);
  size_t best_distance = std::max<size_t>(1, word.size() / 3);
  std::vector<std::string> best;
  for (const std::string& choice : choices) {
    if (choice.size() > 2 * longest_word) continue;
    const size_t distance = edit_distance(wanted, lower_case(choice));
    if (distance > best_distance) continue;
    if (distance < best_distance) best.clear();
    best_distance = distance;
    if (std::ranges::find(best, choice) == best.end()) best.push_back(choice);
  }
  return best;
}

}  // namespace

std::optional<std::string> closest(std::string_view word, std::span<const std::string> choices) {
  const auto found = nearest(word, choices);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::string did_you_mean(std::string_view word, std::span<const std::string> choices) {
  constexpr size_t most = 3;
  auto found = nearest(word, choices);
  if (found.empty()) found = beginning_with(lower_case(word), choices);
  if (found.empty()) return "";
  if (found.size() > most) found.resize(most);
  std::string text = fmt::format("; did you mean \"{}\"", found.front());
  for (size_t i = 1; i < found.size(); ++i)
    text += fmt::format("{}\"{}\"", i + 1 < found.size() ? ", " : " or ", found[i]);
  return text + "?";
}

void refuse_unknown_name(const std::string& where, const std::string& name, const std::string& kind,
                         const std::vector<std::string>& known) {
  throw ConfigError("{}: \"{}\" is not {} that stretto has{} (known: {})", where, name, kind,
                    did_you_mean(name, known), fmt::join(known, ", "));
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 10) return fmt::format("{:.2f}s", seconds);
  const auto total = static_cast<long long>(std::llround(seconds));
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m {:02}s", total / 60, total % 60);
  if (total < 86400) return fmt::format("{}h {:02}m", total / 3600, total % 3600 / 60);
  return fmt::format("{}d {:02}h", total / 86400, total % 86400 / 3600);
}

std::string human_bytes(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";  // closes the quote, adds an escaped one, reopens it
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;  // from_chars rejects '+', which is removed below
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<long long> parse_int(std::string_view text) { return parse_number<long long>(text); }
std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }

}  // namespace stretto
