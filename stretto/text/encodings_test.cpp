#include <array>
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/text/golden_support.h"
#include "stretto/text/utf8.h"

// Compares all columns of texts, words and pairs, with every truncation strategy and all windows, with
// Hugging Face tokenizers: see scripts/make_golden_encodings.py.
namespace stretto::text {
namespace {

using nlohmann::json;

// A text or words of a case, and the Input that views it.
class CaseInput {
 public:
  explicit CaseInput(const json& value) {
    if (value.is_array()) words_ = value.get<std::vector<std::string>>();
    if (value.is_string()) text_ = value.get<std::string>();
    split_ = value.is_array();
  }
  Input input() const { return split_ ? Input(words_) : Input(text_); }

 private:
  std::string text_;
  std::vector<std::string> words_;
  bool split_ = false;
};

EncodeOptions options_of(const json& expected) {
  static const std::map<std::string, Truncation> strategies = {
      {"longest_first", Truncation::longest_first},
      {"only_first", Truncation::only_first},
      {"only_second", Truncation::only_second},
      {"do_not_truncate", Truncation::do_not_truncate}};
  EncodeOptions options{.special_tokens = expected.value("special", true)};
  if (!expected.contains("max_length")) return options;
  options.max_length = expected["max_length"].get<size_t>();
  options.truncation = strategies.at(expected["strategy"]);
  options.stride = expected["stride"].get<size_t>();
  options.truncation_side = expected["side"] == "left" ? Side::left : Side::right;
  return options;
}

template <class Values>
void append_column(std::string& line, const Values& values, char behind) {
  for (const auto value : values) {
    const fmt::format_int text(static_cast<int64_t>(value));
    line.append(text.data(), text.size()) += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  line += behind;
}

// Like line_of in the script.
std::string all_columns(const Encoding& encoding, bool types) {
  std::vector<uint32_t> offsets;
  for (const Offset& offset : encoding.offsets) {
    offsets.push_back(offset.begin);
    offsets.push_back(offset.end);
  }
  std::string line;
  append_column(line, encoding.ids, '\t');
  append_column(line, types ? encoding.type_ids : std::vector<int32_t>(), '\t');
  append_column(line, offsets, '\t');
  append_column(line, encoding.word_ids, '\t');
  append_column(line, encoding.sequence_ids, '\t');
  append_column(line, encoding.special_tokens_mask, '\n');
  return line;
}

void expect_case(const Tokenizer& tokenizer, const json& expected) {
  const CaseInput first(expected["first"]);
  const bool pair = expected.contains("second");
  const CaseInput second(pair ? expected["second"] : json());
  const EncodeOptions options = options_of(expected);
  const auto encode = [&] {
    return pair ? tokenizer.encode_pair_windows(first.input(), second.input(), options)
                : tokenizer.encode_windows(first.input(), options);
  };
  if (expected["sums"].empty()) {
    EXPECT_THROW(encode(), Error);
    return;
  }
  const auto windows = encode();
  const Encoding one = pair ? tokenizer.encode_pair(first.input(), second.input(), options)
                            : tokenizer.encode(first.input(), options);
  EXPECT_EQ(all_columns(one, true), all_columns(windows[0], true));
  std::vector<std::string> sums;
  std::string lines;
  for (const Encoding& window : windows) {
    const bool types = expected["tokenizer"] != "xlm_roberta" || !pair || &window == &windows[0];
    const std::string line = all_columns(window, types);
    sums.push_back(fmt::format("{:08x}", crc32(line, 0)));
    lines += line;
  }
  EXPECT_EQ(sums, expected["sums"].get<std::vector<std::string>>()) << lines;
  if (!expected.contains("decoded")) return;
  EXPECT_EQ(tokenizer.decode(one.ids), expected["decoded"][0].get<std::string>());
  EXPECT_EQ(tokenizer.decode(one.ids, {.skip_special_tokens = false}),
            expected["decoded"][1].get<std::string>());
}

int expect_cases(const std::map<std::string, Tokenizer>& tokenizers, const std::string& name) {
  std::istringstream file(read_file(golden_path(name)));
  int row = 0;
  for (std::string line; std::getline(file, line);) {
    const json expected = json::parse(line);
    SCOPED_TRACE(fmt::format("row {}: {}", ++row, line));
    expect_case(tokenizers.at(expected["tokenizer"]), expected);
  }
  return row;
}

TEST(GoldenEncodings, TextsWordsPairsAndDecoding) {
  std::map<std::string, Tokenizer> tokenizers;
  for (const std::string name : {"uncased", "options"}) tokenizers.emplace(name, load_golden(name));
  for (const std::string& name : golden_families) tokenizers.emplace(name, load_golden(name));
  EXPECT_GT(expect_cases(tokenizers, "encodings.jsonl"), 1000);
}

TEST(GoldenEncodings, Decoders) {
  std::map<std::string, Tokenizer> tokenizers;
  for (const std::string& name : golden_decoders) tokenizers.emplace(name, load_golden(name));
  EXPECT_GT(expect_cases(tokenizers, "decoder_encodings.jsonl"), 900);
}

// Like code_point_text in the script.
void append_family_text(std::string& text, char32_t value) {
  if (value >= 0xD800 && value < 0xE000) return;
  std::string c;
  append_utf8(c, value);
  text += value >= 0x33000 ? "a" + c + "b "
                           : " a" + c + "b " + c + c + " 1" + c + "!" + c + " " + c + "'s e" + c + "\u0301 ";
}

// Does the same as code_point_text in the script of decoders.
void append_decoder_text(std::string& text, char32_t value) {
  if (value >= 0xD800 && value < 0xE000) return;
  std::string c;
  append_utf8(c, value);
  text += value >= 0x33000
              ? "a" + c + "b "
              : " a" + c + "b '" + c + "x 12" + c + "\n" + c + " \n" + c + "' " + c + "!" + c + c + "\n";
}

// The sums of each tokenizer are a column of the file.
template <class Names>
void expect_code_points(const std::string& file, const Names& names, void (*append)(std::string&, char32_t)) {
  const auto rows = read_sums(file);
  ASSERT_EQ(rows.size(), 0x110000 / 1024);
  for (size_t column = 0; column < names.size(); ++column) {
    const Tokenizer tokenizer = load_golden(names[column]);
    for (const auto& [block, sums] : rows) {
      const auto first = static_cast<char32_t>(std::stoul(block, nullptr, 16));
      uint32_t sum = 0;
      for (char32_t start = first; start < first + 1024; start += 16) {
        std::string text;
        for (char32_t value = start; value < start + 16; ++value) append(text, value);
        sum = crc32(line_of(tokenizer.encode(text)), sum);
      }
      EXPECT_EQ(sum, sums.at(column))
          << "tokenizer " << names[column] << ", 1024 code points from U+" << block;
    }
  }
}

TEST(GoldenEncodings, EveryCodePoint) {
  expect_code_points("family_code_points.txt", std::array<std::string, 3>{"gpt2", "unigram", "xlm_roberta"},
                     append_family_text);
}

TEST(GoldenEncodings, EveryCodePointOfDecoders) {
  expect_code_points("decoder_code_points.txt", golden_decoders, append_decoder_text);
}

void expect_lines_of_data(const std::filesystem::path& data, const std::string& sums_file,
                          const std::array<Tokenizer, 3>& tokenizers) {
  const auto rows = read_sums(sums_file);
  ASSERT_FALSE(rows.empty());
  for (const auto& [path, sums] : rows) {
    const MappedFile file(data / path);
    std::string_view text = file.text();
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (file.size() == 0) continue;
    std::vector<Input> lines;
    for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
    for (size_t i = 0; i < tokenizers.size(); ++i) {
      uint32_t sum = 0;
      for (const Encoding& encoding : encode_batch(tokenizers[i], lines)) sum = crc32(line_of(encoding), sum);
      EXPECT_EQ(sum, sums.at(i)) << path << ", tokenizer " << i;
    }
  }
}

TEST(GoldenEncodings, EveryLineOfTheRealData) {
  const char* folder = std::getenv("STRETTO_DATA");
  if (folder == nullptr) GTEST_SKIP() << "STRETTO_DATA is not set";
  const std::filesystem::path data = folder;
  expect_lines_of_data(
      data, "family_data_sums.txt",
      {Tokenizer::load(data / "tokenizers/gpt2"), Tokenizer::load(data / "tokenizers/roberta-base"),
       Tokenizer::load(data / "tokenizers/unigram/t5_tokenizer_base.model")});
}

TEST(GoldenEncodings, EveryLineOfTheRealDataOfDecoders) {
  const char* folder = std::getenv("STRETTO_DATA");
  if (folder == nullptr) GTEST_SKIP() << "STRETTO_DATA is not set";
  expect_lines_of_data(folder, "decoder_data_sums.txt",
                       {load_golden("llama3"), load_golden("qwen2"), load_golden("llama2")});
}

TEST(Windows, AStrideThatFillsAWindowIsRefused) {
  const Tokenizer tokenizer = load_golden("uncased");
  EXPECT_THAT(message_of<ConfigError>([&] {
                tokenizer.encode_windows("hello hello hello hello", {.max_length = 4, .stride = 2});
              }),
              has_all("tokenizer: ", "a stride of 2", "the 2 tokens of text in a window"));
}

TEST(Windows, ATextThatIsTooShortToTruncateIsRefused) {
  const Tokenizer tokenizer = load_golden("uncased");
  const auto error_of = [&](Truncation truncation) {
    return message_of([&] {
      tokenizer.encode_pair("hello hello hello hello", "the map",
                            {.max_length = 5, .truncation = truncation});
    });
  };
  EXPECT_THAT(error_of(Truncation::only_second),
              has_all("tokenizer: the second text has 2 tokens", "4 would have to be removed",
                      "keep 2 in total", "maximum length"));
  EXPECT_EQ(error_of(Truncation::longest_first), "no error");
}

}  // namespace
}  // namespace stretto::text
