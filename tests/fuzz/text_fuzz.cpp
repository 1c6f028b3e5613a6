#include <algorithm>

#include "tests/fuzz/sound_encoding.h"

#include "stretto/text/golden_support.h"

// Input: any bytes as a text, or as a pair of texts, for the tokenizers of the golden tests. The first bytes
// select the tokenizer, the length to truncate to and the beginning of the second text.
namespace stretto::fuzz {
namespace {

constexpr size_t header_bytes = 3;

std::vector<text::Tokenizer> load_all() {
  std::vector<text::Tokenizer> tokenizers;
  for (const std::string& name : text::golden_tokenizers) tokenizers.push_back(text::load_golden(name));
  for (const std::string& name : text::golden_families) tokenizers.push_back(text::load_golden(name));
  return tokenizers;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string text = "New York [MASK] <both> caf\u00e9 \u4e2d\u6587 x";
  std::vector<std::string> inputs;
  for (char tokenizer = 0; tokenizer < 9; ++tokenizer)
    inputs.push_back(std::string{tokenizer, 12, 20} + text);
  return inputs;
}

// Fragments that tokenizers treat specially, and random bytes.
std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  static const std::vector<std::string> pieces = {
      "[MASK]", "<both>", "<word>", " ",        "\u0301", "\u0323",       "\u4e2d",
      "a",      "New",    " York",  "\xf0\x9f", "\xe0",   "\xed\xa0\x80", "\u00e0"};
  std::string result = input.substr(0, 200);
  for (uint64_t left = 1 + random() % 20; left > 0; --left) {
    const std::string byte(1, static_cast<char>(random()));
    result.insert(random() % (result.size() + 1),
                  random() % 2 == 0 ? pieces[random() % pieces.size()] : byte);
  }
  for (size_t i = 0; i < header_bytes; ++i) result[i] = static_cast<char>(random());
  return result;
}

void run(const std::string& input) {
  static const std::vector<text::Tokenizer> tokenizers = load_all();
  if (input.size() < header_bytes) return;
  const auto number = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(input[at])); };
  const text::Tokenizer& tokenizer = tokenizers[number(0) % tokenizers.size()];
  const std::string text = input.substr(header_bytes);
  require_sound(tokenizer, tokenizer.encode(text), text.size());

  const size_t cut = std::min(number(2), text.size());
  const text::EncodeOptions options{.special_tokens = false, .max_length = number(1) % 30};
  const text::Encoding pair = tokenizer.encode_pair(text.substr(0, cut), text.substr(cut), options);
  require_sound(tokenizer, pair, text.size());
  require(pair.size() <= *options.max_length, "a pair is cut to max_length");
}

}  // namespace stretto::fuzz
