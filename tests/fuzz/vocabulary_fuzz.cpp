#include "tests/fuzz/fuzz.h"

#include "stretto/text/tokenizer_files.h"

// vocab.txt; what loads must tokenize.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  return {"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nfilm\n\xe4\xb8\xad\n",
          "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nA\r\n"};
}

void run(const std::string& input) {
  const text::Tokenizer tokenizer(
      text::parse_vocabulary(input, "vocab.txt", nlohmann::json::object(), "", {.lowercase = true}));
  const text::Encoding encoding = tokenizer.encode("a film, \xf0\x9f\x98\x80 ab" + input.substr(0, 64));
  for (const int32_t id : encoding.ids) require(tokenizer.token(id).has_value(), "every id has a token");
}

}  // namespace stretto::fuzz
