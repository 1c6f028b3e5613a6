#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/strings.h"
#include "stretto/text/bert_normalizer.h"
#include "stretto/text/golden_support.h"
#include "stretto/text/utf8.h"

// Compares ids, type ids and offsets with Hugging Face tokenizers: see scripts/make_golden_tokenizer.py.
namespace stretto::text {
namespace {

using ::testing::ElementsAreArray;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<int> flat(const std::vector<Offset>& offsets) {
  std::vector<int> result;
  for (const Offset& offset : offsets) {
    result.push_back(static_cast<int>(offset.begin));
    result.push_back(static_cast<int>(offset.end));
  }
  return result;
}

TEST(GoldenTokenizer, HardCases) {
  std::map<std::string, Tokenizer> tokenizers;
  for (const std::string& name : golden_tokenizers) tokenizers.emplace(name, load_golden(name));
  std::istringstream file(read_file(golden_path("cases.jsonl")));
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const auto expected = nlohmann::json::parse(line);
    const Tokenizer& tokenizer = tokenizers.at(expected["tokenizer"]);
    EncodeOptions options{.special_tokens = expected.value("special", true)};
    if (expected.contains("max_length")) options.max_length = expected["max_length"].get<size_t>();
    const std::string first = from_hex(expected["first"]);
    const Encoding encoding = expected.contains("second")
                                  ? tokenizer.encode_pair(first, from_hex(expected["second"]), options)
                                  : tokenizer.encode(first, options);
    SCOPED_TRACE(line);
    EXPECT_EQ(encoding.ids, expected["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(encoding.type_ids, expected["type_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(encoding.special_tokens_mask, expected["mask"].get<std::vector<uint8_t>>());
    EXPECT_EQ(flat(encoding.offsets), expected["offsets"].get<std::vector<int>>());
  }
  EXPECT_GT(count, 300);
}

BertNormalizerOptions normalizer_of(const std::string& name) {
  if (name == "options") {
    return {.clean_text = false, .handle_chinese_chars = false, .strip_accents = true, .lowercase = false};
  }
  return {.strip_accents = name != "cased", .lowercase = name != "cased"};
}

// Like code_point_text in the script.
void append_code_point_text(std::string& text, char32_t value) {
  if (value >= 0xD800 && value < 0xE000) return;
  std::string c;
  append_utf8(c, value);
  if (value >= 0x30000) {
    text += "a" + c + "b ";
  } else {
    text += c + " a" + c + "b a\u0315" + c + "\u0323 " + c + "<word> ";
  }
}

TEST(GoldenTokenizer, EveryCodePoint) {
  const auto rows = read_sums("code_point_sums.txt");
  ASSERT_EQ(rows.size(), 0x110000 / 1024);
  constexpr std::array names = {"cased", "added", "options"};
  for (size_t column = 0; column < names.size(); ++column) {
    const Tokenizer tokenizer = load_golden(names[column]);
    const BertNormalizer normalizer(normalizer_of(names[column]));
    NormalizedText normalized;
    for (const auto& [block, sums] : rows) {
      const auto first = static_cast<char32_t>(std::stoul(block, nullptr, 16));
      uint32_t sum = 0;
      for (char32_t start = first; start < first + 1024; start += 16) {
        std::string text;
        for (char32_t value = start; value < start + 16; ++value) append_code_point_text(text, value);
        normalized.clear();
        normalizer.normalize(text, 0, normalized);
        sum = crc32(normalized.bytes + "\n" + line_of(tokenizer.encode(text)), sum);
      }
      EXPECT_EQ(sum, sums.at(column))
          << "tokenizer " << names[column] << ", 1024 code points from U+" << block;
    }
  }
}

// Random and random_text of the script, with the same random numbers in the same order.
class ScriptRandom {
 public:
  explicit ScriptRandom(uint64_t seed) : state_(seed) {}
  uint32_t below(uint32_t limit) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>((state_ >> 33) % limit);
  }

 private:
  uint64_t state_;
};

void append_unless_surrogate(std::string& text, uint32_t value) {
  if (value < 0xD800 || value >= 0xE000) append_utf8(text, value);
}

std::string random_text(ScriptRandom& random) {
  constexpr std::array fragments = {"[MASK]",       "<both>", "<word>", "<left>", "New York", "caf\u00e9",
                                    "\u4e2d\u56fd", " end",   "the",    " ",      "\u0301",   "\u0323"};
  constexpr std::array<std::array<uint32_t, 2>, 7> ranges = {
      {{0x61, 0x7B}, {0x20, 0x7F}, {0, 0x100}, {0xC0, 0x250}, {0x300, 0x370}, {0, 0x3000}, {0, 0x1E000}}};
  std::string text;
  bool empty = true;  // surrogates count as drawn
  const uint32_t size = random.below(24);
  for (uint32_t i = 0; i < size; ++i, empty = false) {
    const uint32_t kind = random.below(8);
    if (kind == 0) {
      text += fragments[random.below(fragments.size())];
    } else {
      const auto [low, high] = ranges[kind - 1];
      append_unless_surrogate(text, low + random.below(high - low));
    }
  }
  if (!empty && random.below(4) == 0) {
    const uint32_t value = random.below(0x110000);
    append_unless_surrogate(text, value >= 0xD800 && value < 0xE000 ? value - 0x800 : value);
  }
  return text;
}

TEST(GoldenTokenizer, RandomTexts) {
  const auto rows = read_sums("random_sums.txt");
  ASSERT_EQ(rows.size(), 20);
  for (size_t column = 0; column < golden_tokenizers.size(); ++column) {
    const Tokenizer tokenizer = load_golden(golden_tokenizers[column]);
    for (const auto& [row, sums] : rows) {
      ScriptRandom random(std::stoul(row));
      uint32_t sum = 0;
      for (int i = 0; i < 500; ++i) sum = crc32(line_of(tokenizer.encode(random_text(random))), sum);
      EXPECT_EQ(sum, sums.at(column)) << "tokenizer " << golden_tokenizers[column] << ", row " << row;
    }
  }
}

TEST(GoldenTokenizer, EveryLineOfTheRealData) {
  const char* folder = std::getenv("STRETTO_DATA");
  if (folder == nullptr) GTEST_SKIP() << "STRETTO_DATA is not set";
  const std::filesystem::path data = folder;
  const auto rows = read_sums("data_sums.txt");
  ASSERT_FALSE(rows.empty());
  const std::array<Tokenizer, 2> tokenizers = {
      Tokenizer::load(data / "tokenizers/bert-base-uncased/vocab.txt"),
      Tokenizer::load(data / "tokenizers/bert-base-cased/vocab.txt")};
  for (const auto& [path, sums] : rows) {
    const MappedFile file(data / path);
    std::string_view text = file.text();
    if (text.ends_with('\n')) text.remove_suffix(1);
    for (size_t i = 0; i < tokenizers.size(); ++i) {
      uint32_t sum = 0;
      if (file.size() > 0) {
        for (const std::string_view line : split(text, '\n'))
          sum = crc32(line_of(tokenizers[i].encode(line)), sum);
      }
      EXPECT_EQ(sum, sums.at(i)) << path << (i == 0 ? ", uncased" : ", cased");
    }
  }
}

TEST(GoldenTokenizer, TokenizerJsonOfBertBase) {
  const char* folder = std::getenv("STRETTO_DATA");
  if (folder == nullptr) GTEST_SKIP() << "STRETTO_DATA is not set";
  const Tokenizer tokenizer = Tokenizer::load(std::filesystem::path(folder) / "tokenizers/bert-base-uncased");
  EXPECT_THAT(tokenizer.encode("where is Himalayas in the world map?").ids,
              ElementsAreArray({101, 2073, 2003, 26779, 1999, 1996, 2088, 4949, 1029, 102}));
  EXPECT_EQ(tokenizer.vocab_size(), 30522);
  EXPECT_EQ(tokenizer.token(26779), "himalayas");
  EXPECT_EQ(tokenizer.id("[MASK]"), 103);
}

}  // namespace
}  // namespace stretto::text
