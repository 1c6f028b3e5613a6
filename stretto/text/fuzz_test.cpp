#include <random>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/text/golden_support.h"
#include "stretto/text/tokenizer_files.h"

// Random bytes and malformed files: the result is consistent, or a stretto::Error is thrown. Random numbers are the
// same in each run.
namespace stretto::text {
namespace {

using nlohmann::json;

class Fuzz : public testing::Test {
 protected:
  size_t below(size_t limit) { return engine_() % limit; }

  // Fragments that trigger edge cases, mixed with random bytes.
  std::string random_bytes(size_t size) {
    static const std::vector<std::string> pieces = {
        "[MASK]", "<both>", "<word>", " ",        "\u0301", "\u0323",       "\u4e2d",
        "a",      "New",    " York",  "\xf0\x9f", "\xe0",   "\xed\xa0\x80", "\u00e0"};
    std::string bytes;
    while (bytes.size() < size) {
      bytes += below(2) == 0 ? pieces[below(pieces.size())] : std::string(1, static_cast<char>(below(256)));
    }
    return bytes;
  }

  std::string mutated(std::string file) {
    for (size_t changes = 1 + below(4); changes > 0 && !file.empty(); --changes) {
      const size_t at = below(file.size());
      const size_t length = std::min(file.size() - at, 1 + below(40));
      switch (below(5)) {
        case 0:
          file[at] = static_cast<char>(below(256));
          break;
        case 1:
          file.erase(at, length);
          break;
        case 2:
          file.insert(at, file.substr(below(file.size()), length));
          break;
        case 3:
          file.insert(at, random_bytes(1 + below(8)));
          break;
        default:
          file.replace(at, 1, std::to_string(engine_()));
          break;
      }
    }
    return file;
  }

 private:
  std::mt19937_64 engine_{20240607};
};

void expect_sound(const Tokenizer& tokenizer, const Encoding& encoding, size_t text_size) {
  ASSERT_EQ(encoding.offsets.size(), encoding.ids.size());
  ASSERT_EQ(encoding.type_ids.size(), encoding.ids.size());
  ASSERT_EQ(encoding.special_tokens_mask.size(), encoding.ids.size());
  for (size_t i = 0; i < encoding.size(); ++i) {
    ASSERT_TRUE(tokenizer.token(encoding.ids[i]));
    ASSERT_LE(encoding.offsets[i].end, text_size);
  }
}

TEST_F(Fuzz, AnyBytesAreAText) {
  std::vector<Tokenizer> tokenizers;
  for (const std::string& name : golden_tokenizers) tokenizers.push_back(load_golden(name));
  for (const std::string& name : golden_families) tokenizers.push_back(load_golden(name));
  for (int round = 0; round < 20000; ++round) {
    const std::string text = random_bytes(below(200));
    const Tokenizer& tokenizer = tokenizers[below(tokenizers.size())];
    expect_sound(tokenizer, tokenizer.encode(text), text.size());
    const EncodeOptions options{.special_tokens = false, .max_length = below(30)};
    const Encoding pair = tokenizer.encode_pair(text, random_bytes(below(50)), options);
    ASSERT_LE(pair.size(), *options.max_length);
  }
}

TEST_F(Fuzz, BrokenTokenizerJson) {
  const std::vector<std::string> files = {
      read_file(golden_path("added.json")), read_file(golden_path("options.json")),
      read_file(golden_path("gpt2/tokenizer.json")), read_file(golden_path("unigram/tokenizer.json"))};
  int loaded = 0;
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string file = mutated(files[below(files.size())]);
    try {
      const Tokenizer tokenizer(
          parse_tokenizer_json(parse_json(file, "tokenizer.json"), "tokenizer.json", json::object(), "", {}));
      const std::string text = random_bytes(100);
      expect_sound(tokenizer, tokenizer.encode(text), text.size());
      ++loaded;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(Fuzz, BrokenVocabulary) {
  const std::string good = read_file(golden_path("uncased.txt"));
  for (int round = 0; round < 5000; ++round) {
    const std::string file = mutated(below(20) == 0 ? random_bytes(100) : good);
    try {
      const Tokenizer tokenizer(
          parse_vocabulary(file, "vocab.txt", json::object(), "", {.lowercase = below(2) == 0}));
      const std::string text = random_bytes(100);
      expect_sound(tokenizer, tokenizer.encode(text), text.size());
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace stretto::text
