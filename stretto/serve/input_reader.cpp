#include "stretto/serve/input_reader.h"

#include <utility>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"

namespace stretto::serve {
namespace {

constexpr size_t most_json_bytes = size_t{256} << 20;

// The first bytes of an input, without a byte order mark.
std::string_view without_mark(std::string_view text, const std::string& name) {
  if (text.starts_with("\x1f\x8b"))
    throw DataError("{}: it is compressed; expected text or JSON (`zcat` decompresses it)", name);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw DataError("{}: it is in UTF-16; expected UTF-8 (`iconv -f UTF-16 -t UTF-8` converts it)", name);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// The lines on which the elements of a JSON list begin. REQUIRES: `text` is valid.
std::vector<int64_t> lines_of_elements(std::string_view text) {
  std::vector<int64_t> lines;
  int64_t line = 1, depth = 0;
  bool in_string = false, expected = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    if (expected && c != ']') lines.push_back(line);
    expected = false;
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') expected = ++depth == 1;
    if (c == ']' || c == '}') --depth;
    if (c == ',') expected = depth == 1;
  }
  return lines;
}

nlohmann::json parse_document(std::string_view text, const std::string& name, const OptionNames& names) {
  try {
    return parse_json(text, name);
  } catch (const DataError& error) {
    const std::string_view first = text.substr(0, text.find('\n'));
    if (first.size() == text.size() || !nlohmann::json::accept(first)) throw;
    throw DataError("{}; for a JSON value per line: {}", error.what(), names("InputFormat::jsonl"));
  }
}

void read_document(LineReader& source, const InputParser& parser, const UseInput& use) {
  const std::string all = source.rest(most_json_bytes);
  const std::string_view text = without_mark(all, source.name());
  const nlohmann::json document = parse_document(text, source.name(), parser.names);
  std::vector<std::pair<PipelineInput, std::string>> inputs;
  const auto keep = [&](PipelineInput input, const std::string& place) {
    inputs.emplace_back(std::move(input), place);
  };
  if (parser.is_list_of_inputs(document)) {
    const auto lines = lines_of_elements(text);
    for (size_t i = 0; i < document.size(); ++i)
      parser.parse_element(document[i], fmt::format("{}:{}", source.name(), lines.at(i)), keep);
  } else {
    parser.parse_json(document, source.name() + ":1", keep);
  }
  for (auto& [input, place] : inputs) use(std::move(input), place);
}

void read_line(std::string_view line, const std::string& name, int64_t number, InputFormat format,
               const InputParser& parser, const UseInput& use) {
  if (number == 1) line = without_mark(line, name);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::string place = fmt::format("{}:{}", name, number);
  if (format == InputFormat::text) {
    if (number == 1 && line.starts_with('{') && nlohmann::json::accept(line))
      log::warning("{}: this is JSON, but lines of text are expected; {} reads it as JSON", place,
                   parser.names("InputFormat::jsonl"));
    return use(parser.parse_line(line, place), place);
  }
  if (trim(line).empty()) return;
  nlohmann::json value;
  try {
    value = parse_json(line, name, /*max_depth=*/64, number);
  } catch (const DataError& error) {
    throw DataError("{}; expected one JSON value per line (for a file that is one value: {})", error.what(),
                    parser.names("InputFormat::json"));
  }
  parser.parse_json(value, place, use);
}

}  // namespace

InputFormat format_of(const std::filesystem::path& path, const OptionNames& names) {
  const std::string extension = path.extension().string();
  if (extension == ".json") return InputFormat::json;
  if (extension == ".jsonl" || extension == ".ndjson") return InputFormat::jsonl;
  if (extension == ".csv" || extension == ".tsv") {
    throw ConfigError(
        "{} {}: {} files are tables with a header; expected a text per line, .json or .jsonl (`cut -f 1 {} | tail -n +2` prints a column; {} reads the lines as they are)",
        names("path"), path.string(), extension, path.string(), names("InputFormat::text"));
  }
  return InputFormat::text;
}

void read_inputs(LineReader& source, InputFormat format, const InputParser& parser, const UseInput& use) {
  if (format == InputFormat::json) return read_document(source, parser, use);
  for (auto lines = source.next_lines(); !lines.empty(); lines = source.next_lines()) {
    for (size_t i = 0; i < lines.size(); ++i)
      read_line(lines[i], source.name(), source.line_number() + static_cast<int64_t>(i), format, parser, use);
  }
}

}  // namespace stretto::serve
