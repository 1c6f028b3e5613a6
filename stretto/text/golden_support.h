#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "stretto/base/files.h"
#include "stretto/text/tokenizer.h"

// Helpers of the tests that compare with checksums written by scripts/make_golden_tokenizer.py.
namespace stretto::text {

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer" / name;
}

// Python's zlib.crc32, continued from `sum`.
inline uint32_t crc32(std::string_view bytes, uint32_t sum) {
  return static_cast<uint32_t>(
      ::crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Ids, then offsets, in the format of line_of() in the script.
inline std::string line_of(const Encoding& encoding) {
  std::string line;
  const auto append = [&](auto number, char behind) {
    const fmt::format_int text(number);
    line.append(text.data(), text.size()) += behind;
  };
  for (const int32_t id : encoding.ids) append(id, ' ');
  if (!line.empty()) line.pop_back();
  line += '\t';
  for (const Offset& offset : encoding.offsets) {
    append(offset.begin, ':');
    append(offset.end, ' ');
  }
  if (line.back() == ' ') line.pop_back();
  return line + '\n';
}

// Rows of a name and sums in hexadecimal, by name in the file's order.
inline std::vector<std::pair<std::string, std::vector<uint32_t>>> read_sums(const std::string& name) {
  std::vector<std::pair<std::string, std::vector<uint32_t>>> rows;
  std::istringstream file(read_file(golden_path(name)));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string row;
    words >> row >> std::hex;
    std::vector<uint32_t> sums;
    for (uint32_t sum; words >> sum;) sums.push_back(sum);
    rows.emplace_back(row, sums);
  }
  return rows;
}

// The tokenizers of the golden folder, in the order of the sums' columns.
inline const std::array<std::string, 4> golden_tokenizers = {"cased", "uncased", "added", "options"};

// The tokenizers of scripts/golden_families.py, one per folder.
inline const std::array<std::string, 5> golden_families = {"gpt2", "roberta", "unigram", "xlm_roberta",
                                                           "word_level"};

// The tokenizers of scripts/make_golden_decoder_tokenizers.py.
inline const std::array<std::string, 4> golden_decoders = {"llama3", "qwen2", "llama2", "llama2_model"};

inline Tokenizer load_golden(const std::string& name) {
  if (std::filesystem::is_directory(golden_path(name))) return Tokenizer::load(golden_path(name));
  const bool vocabulary = name == "cased" || name == "uncased";
  return Tokenizer::load(golden_path(name + (vocabulary ? ".txt" : ".json")));
}

}  // namespace stretto::text
