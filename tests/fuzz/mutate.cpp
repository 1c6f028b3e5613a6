#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace stretto::fuzz {
namespace {

using namespace std::string_view_literals;

constexpr std::array words = {"\0"sv,
                              "\n"sv,
                              "\r\n"sv,
                              "\t"sv,
                              "\""sv,
                              "\"\""sv,
                              "\\"sv,
                              ","sv,
                              ":"sv,
                              ": "sv,
                              "{"sv,
                              "}"sv,
                              "["sv,
                              "]"sv,
                              "[[[[[[[["sv,
                              "{\"a\":"sv,
                              "null"sv,
                              "true"sv,
                              "~"sv,
                              "&a "sv,
                              "*a"sv,
                              "!!"sv,
                              "- "sv,
                              "#"sv,
                              "${"sv,
                              "../"sv,
                              "/"sv,
                              "\\ud800"sv,
                              "\xc3\x28"sv,
                              "\xf0\x9f\x98\x80"sv,
                              "\xef\xbb\xbf"sv,
                              "0"sv,
                              "-1"sv,
                              "1e308"sv,
                              "-1e999"sv,
                              "nan"sv,
                              "2147483648"sv,
                              "4294967296"sv,
                              "9223372036854775807"sv,
                              "9223372036854775808"sv,
                              "18446744073709551616"sv,
                              "-9223372036854775808"sv,
                              "0.1"sv,
                              "1e-320"sv};

constexpr std::array<uint64_t, 14> numbers = {0,
                                              1,
                                              0x7f,
                                              0x80,
                                              0xff,
                                              0x7fff,
                                              0xffff,
                                              0x7fffffff,
                                              0x80000000,
                                              0xffffffff,
                                              uint64_t{1} << 40,
                                              uint64_t{1} << 62,
                                              std::numeric_limits<uint64_t>::max() / 2,
                                              std::numeric_limits<uint64_t>::max()};

class Mutator {
 public:
  explicit Mutator(std::mt19937_64& random) : random_(random) {}

  void change(std::string& text, const std::string& other) {
    const size_t at = below(text.size() + 1);
    const size_t length = std::min<size_t>(text.size() - at, 1 + below(below(2) == 0 ? 8 : text.size() + 1));
    switch (below(10)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        return;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        return;
      case 2:
        text.insert(at, words[below(words.size())]);
        return;
      case 3:
        text.replace(at, length, words[below(words.size())]);
        return;
      case 4:
        text.erase(at, length);
        return;
      case 5:
        text.insert(below(text.size() + 1), text.substr(at, length));
        return;
      case 6:
        text.replace(at, std::string::npos, other.substr(std::min(other.size(), at)));
        return;
      case 7:
        if (!other.empty()) {
          const size_t from = below(other.size());
          text.insert(at, other, from, 1 + below(other.size() - from));
        }
        return;
      case 8:
        return overwrite_number(text, at);
      default:
        return change_digits(text, at);
    }
  }

  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void overwrite_number(std::string& text, size_t at) {
    const uint64_t number = numbers[below(numbers.size())] + below(3) - 1;
    const size_t bytes = size_t{1} << below(4);
    if (at + bytes <= text.size()) std::memcpy(text.data() + at, &number, bytes);
  }

  // Changes digits of the first decimal number from `at` on.
  void change_digits(std::string& text, size_t at) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto begin = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_digit);
    const auto end = std::find_if_not(begin, text.end(), is_digit);
    if (begin == end) return;
    text.replace(begin, end, std::to_string(numbers[below(numbers.size())] + below(3) - 1));
  }

  std::mt19937_64& random_;
};

}  // namespace

std::string mutate(std::string input, const std::string& other, size_t max_bytes, std::mt19937_64& random) {
  Mutator mutator(random);
  const size_t changes = size_t{1} << mutator.below(4);
  for (size_t i = 0; i < changes; ++i) {
    mutator.change(input, other);
    if (input.size() > max_bytes) input.resize(max_bytes);
  }
  return input;
}

}  // namespace stretto::fuzz
