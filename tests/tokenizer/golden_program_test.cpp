#include <map>
#include <optional>

#include "tests/support/shell.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/temp_folder.h"
#include "stretto/text/golden_support.h"

// Compares `stretto tokenize` with Hugging Face's tokenizers: texts, words and pairs, with every truncation
// strategy and all windows, in every output format. See scripts/make_golden_encodings.py.
namespace stretto {
namespace {

using nlohmann::json;

// The line of input for a case's texts; nullopt if a line cannot represent the case.
std::optional<std::string> line_of_input(const json& expected) {
  std::string line;
  for (const char* key : {"first", "second"}) {
    if (!expected.contains(key)) continue;
    if (!line.empty() || std::string_view(key) == "second") line += '\t';
    std::string text;
    if (expected[key].is_array()) {
      for (const auto& word : expected[key]) {
        if (word.get<std::string>().empty() ||
            word.get<std::string>().find_first_of(" \t\n\v\f\r") != std::string::npos)
          return std::nullopt;
        text += text.empty() ? word.get<std::string>() : " " + word.get<std::string>();
      }
    } else {
      text = expected[key].get<std::string>();
    }
    if (text.find('\n') != std::string::npos ||
        (expected.contains("second") && text.find('\t') != std::string::npos))
      return std::nullopt;
    line += text;
  }
  return line;
}

std::string arguments_of(const json& expected) {
  const std::string name = expected["tokenizer"];
  std::string arguments = std::string("--tokenizer ") + GOLDEN_TOKENIZERS "/" + name;
  if (name == "uncased") arguments += ".txt";
  if (name == "options") arguments += ".json";
  if (expected.contains("second")) arguments += " --pair";
  if (expected["first"].is_array()) arguments += " --split-into-words";
  if (!expected.value("special", true)) arguments += " --no-special";
  if (!expected.contains("max_length")) return arguments;
  return arguments + fmt::format(" --max-length {} --stride {} --truncation {} --truncation-side {}",
                                 expected["max_length"].get<int>(), expected["stride"].get<int>(),
                                 expected["strategy"].get<std::string>(),
                                 expected["side"].get<std::string>());
}

void append_column(std::string& line, const json& values, char behind) {
  const size_t begin = line.size();
  for (const json& value : values) {
    if (line.size() > begin) line += ' ';
    line += value.is_null() ? "-1" : value.dump();
  }
  line += behind;
}

// Like line_of in the script.
std::string all_columns(const json& encoding, bool types) {
  json offsets = json::array();
  for (const json& pair : encoding["offset_mapping"])
    for (const json& number : pair) offsets.push_back(number);
  std::string line;
  append_column(line, encoding["input_ids"], '\t');
  append_column(line, types ? encoding["token_type_ids"] : json::array(), '\t');
  append_column(line, offsets, '\t');
  append_column(line, encoding["word_ids"], '\t');
  append_column(line, encoding["sequence_ids"], '\t');
  append_column(line, encoding["special_tokens_mask"], '\n');
  return line;
}

std::vector<std::string> sums_of(const json& expected, const json& windows) {
  std::vector<std::string> sums;
  for (size_t k = 0; k < windows.size(); ++k) {
    const bool types = expected["tokenizer"] != "xlm_roberta" || !expected.contains("second") || k == 0;
    sums.push_back(fmt::format("{:08x}", text::crc32(all_columns(windows[k], types), 0)));
  }
  return sums;
}

// A form of output, made from the JSON of the same line.
std::string line_of(const std::string& form, const json& windows) {
  std::string line;
  for (const json& window : windows) {
    if (&window != &windows.front()) line += '\t';
    for (size_t i = 0; i < window["input_ids"].size(); ++i) {
      if (i > 0) line += ' ';
      if (form == "--tokens") {
        line += window["tokens"][i].get<std::string>();
      } else if (form == "--offsets") {
        line += window["offset_mapping"][i][0].dump() + ":" + window["offset_mapping"][i][1].dump();
      } else {
        const json& value = window[form == "--ids"        ? "input_ids"
                                   : form == "--type-ids" ? "token_type_ids"
                                   : form == "--word-ids" ? "word_ids"
                                                          : "sequence_ids"][i];
        line += value.is_null() ? "-" : value.dump();
      }
    }
  }
  return line;
}

std::vector<std::string> lines_of(const ShellResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> lines;
  std::istringstream in(result.out);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TokenizeGolden, TextsWordsPairsAndWindows) {
  struct Group {
    std::vector<json> cases;
    std::string input;
  };
  std::map<std::string, Group> groups;  // by arguments
  std::istringstream file(read_file(GOLDEN_TOKENIZERS "/encodings.jsonl"));
  size_t refused = 0, compared = 0, words = 0, in_all_forms = 0;
  const TempFolder folder;
  const std::string input = folder.path() / "input.txt",
                    program = std::string(STRETTO_PROGRAM) + " tokenize ";
  for (std::string row; std::getline(file, row);) {
    const json expected = json::parse(row);
    const auto line = line_of_input(expected);
    if (!line) continue;
    if (expected["sums"].empty()) {
      if (++refused % 16 != 0) continue;  // encodings_test.cpp has all of them
      write_file_atomic(input, *line);
      EXPECT_EQ(shell(program + arguments_of(expected) + " " + input).exit_code, 2) << row;
      continue;
    }
    Group& group = groups[arguments_of(expected)];
    group.cases.push_back(expected);
    group.input += *line + "\n";
  }
  for (const auto& [arguments, group] : groups) {
    SCOPED_TRACE(arguments);
    write_file_atomic(input, group.input);
    const auto run = [&](const std::string& form) {
      return lines_of(shell(program + arguments + " " + form + " " + input));
    };
    const auto encodings = run("--json");
    ASSERT_EQ(encodings.size(), group.cases.size());
    std::vector<json> windows;
    for (size_t i = 0; i < encodings.size(); ++i) {
      const json encoding = json::parse(encodings[i]);
      EXPECT_EQ(encoding.is_array(), group.cases[i].contains("max_length"));
      windows.push_back(encoding.is_array() ? encoding : json::array({encoding}));
      EXPECT_EQ(sums_of(group.cases[i], windows[i]), group.cases[i]["sums"].get<std::vector<std::string>>())
          << group.cases[i];
      ++compared;
      words += group.cases[i]["first"].is_array();
    }
    if (compared % 12 != 0) continue;  // the other formats represent the same encoding
    ++in_all_forms;
    for (const std::string form :
         {"--ids", "--tokens", "--offsets", "--type-ids", "--word-ids", "--sequence-ids"}) {
      const auto found = run(form);
      ASSERT_EQ(found.size(), windows.size()) << form;
      for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], line_of(form, windows[i])) << form;
    }
  }
  EXPECT_GT(compared, 1000u);
  EXPECT_GT(words, 30u);
  EXPECT_GT(in_all_forms, 10u);
  EXPECT_GT(refused, 50u);
}

}  // namespace
}  // namespace stretto
