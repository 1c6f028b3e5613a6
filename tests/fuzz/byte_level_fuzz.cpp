#include "tests/fuzz/sound_encoding.h"

#include "stretto/base/json.h"
#include "stretto/text/tokenizer_files.h"

// Input: vocab.json and merges.txt, separated by NUL. A tokenizer that loads must tokenize without losing a
// byte that its vocabulary contains.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  const std::string roberta =
      R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "Ġ": 6, "ab": 7, "Ġab": 8, "<mask>": 9, "Ã": 10, "©": 11, "Ã©": 12})";
  const std::string gpt2 = R"({"<|endoftext|>": 0, "a": 1, "'": 2, "'a": 3})";
  return {roberta + '\0' + "#version: 0.2\na b\nĠ ab\nÃ ©\n", gpt2 + '\0' + "' a\r\n"};
}

void run(const std::string& input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view merges = std::string_view(input).substr(std::min(end + 1, input.size()));
  const text::Tokenizer tokenizer(text::parse_byte_level(parse_json(input.substr(0, end), "vocab.json"),
                                                         "vocab.json", merges, "merges.txt",
                                                         nlohmann::json::object(), "", {}));
  const std::string text =
      "ab ab \xc3\xa9"
      "a's" +
      std::string(merges.substr(0, 200));
  const text::Encoding encoding = tokenizer.encode(text);
  require_sound(tokenizer, encoding, text.size());
  tokenizer.decode(encoding.ids);
}

}  // namespace stretto::fuzz
