#include "stretto/corpus/tagged.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"
#include "stretto/corpus/conll.h"
#include "stretto/corpus/reader_format.h"
#include "stretto/corpus/tsv.h"

namespace stretto::corpus {
namespace {

// --- CoNLL

// The index of the column with the number `asked`; `unset` if that is empty.
std::optional<size_t> conll_column(const std::string& setting, const std::string& asked,
                                   std::optional<size_t> unset, const ConllFile& file,
                                   const std::string& name) {
  if (asked.empty()) return unset;
  const auto number = parse_int(asked);
  if (number && *number >= 1 && *number <= static_cast<int64_t>(file.columns))
    return static_cast<size_t>(*number - 1);
  throw ConfigError("{}: {} has {}; expected a column number from 1 to {}, found \"{}\"", setting, name,
                    counted(static_cast<int64_t>(file.columns), "column"), file.columns, asked);
}

// Throws DataError for a table of texts, as text classification has it: one sentence without an end, of
// "tokens" that are mostly several words.
void refuse_texts(const ConllFile& file, size_t token, const std::string& name) {
  if (file.sentences.size() > 1) return;
  const auto& rows = file.sentences.front().rows;
  const auto is_text = [&](const auto& row) { return trim(row[token]).find(' ') != std::string_view::npos; };
  const auto first = std::ranges::find_if(rows, is_text);
  if (2 * std::ranges::count_if(rows, is_text) <= std::ssize(rows)) return;
  throw DataError(
      "{}:{}: \"{}\" is several words, as on most lines, and no blank line ends a sentence: this is a table of texts; expected one word per line with its tag, and a blank line after each sentence",
      name, file.sentences.front().line + (first - rows.begin()), cut_utf8((*first)[token], 40));
}

TaggedCorpus parse_conll_corpus(std::string_view content, const std::string& name,
                                const TaggedOptions& options) {
  const ConllFile file = parse_conll(content, name);
  const size_t token = *conll_column(options.names("token"), options.token, 0, file, name);
  refuse_texts(file, token, name);
  const std::optional<size_t> last = file.columns > 1 ? std::optional(file.columns - 1) : std::nullopt;
  const std::optional<size_t> tag = conll_column(options.names("tag"), options.tag, last, file, name);
  TaggedCorpus corpus;
  corpus.columns =
      fmt::format("token = {}, tag = {} of {}", token + 1, tag ? std::to_string(*tag + 1) : "none",
                  counted(static_cast<int64_t>(file.columns), "column"));
  corpus.has_tags = tag.has_value();
  for (const ConllSentence& rows : file.sentences) {
    TaggedSentence& sentence = corpus.sentences.emplace_back();
    sentence.line = rows.line;
    sentence.document = rows.document;
    for (const auto& row : rows.rows) {
      sentence.tokens.emplace_back(row[token]);
      if (tag) sentence.tags.emplace_back(row[*tag]);
    }
  }
  return corpus;
}

// --- JSON Lines

class JsonCorpusReader {
 public:
  JsonCorpusReader(const std::string& name, const TaggedOptions& options) : name_(name), options_(options) {}

  TaggedCorpus read(std::string_view content) {
    while (!content.empty()) {
      const std::string_view line = take_line(content);
      ++line_;
      require_field_size(line.size(), name_, line_);
      if (!trim(line).empty()) add(parse_json(line, name_, /*max_depth=*/64, line_));
    }
    if (corpus_.sentences.empty())
      throw DataError("{}: the file has no sentence; expected JSON Lines with tokens and ner_tags", name_);
    corpus_.columns = fmt::format("token = {}, tag = {}", token_, tag_.empty() ? "none" : tag_);
    corpus_.has_tags = !tag_.empty();
    return std::move(corpus_);
  }

 private:
  void add(const nlohmann::json& row) {
    if (!row.is_object()) {
      throw DataError(
          "{}:{}: a JSON {}; expected an object with tokens and ner_tags per line (`jq -c '.[]'` converts an array)",
          name_, line_, row.type_name());
    }
    if (corpus_.sentences.empty()) choose_keys(row);
    TaggedSentence sentence;
    sentence.line = line_;
    sentence.tokens = tokens(row);
    if (!tag_.empty()) sentence.tags = tags(row, sentence.tokens.size());
    if (!sentence.tokens.empty()) corpus_.sentences.push_back(std::move(sentence));
  }

  void choose_keys(const nlohmann::json& row) {
    token_ = choose(row, options_.names("token"), options_.token, {"tokens", "words"});
    if (token_.empty())
      throw ConfigError("{}:{}: no list of tokens among the keys {}; set {} to its key", name_, line_,
                        keys(row), options_.names("token"));
    tag_ = choose(row, options_.names("tag"), options_.tag, {"ner_tags", "tags", "labels", "ner"});
  }

  std::string choose(const nlohmann::json& row, const std::string& setting, const std::string& asked,
                     std::initializer_list<const char*> usual) const {
    if (!asked.empty()) {
      if (row.contains(asked)) return asked;
      throw ConfigError("{}: {}:{} has no key \"{}\"; its keys are {}", setting, name_, line_, asked,
                        keys(row));
    }
    for (const char* key : usual)
      if (row.contains(key) && row[key].is_array()) return key;
    return "";
  }

  static std::string keys(const nlohmann::json& row) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.push_back(key);
    return keys.empty() ? "(none)" : fmt::format("{}", fmt::join(keys, ", "));
  }

  const nlohmann::json& list(const nlohmann::json& row, const std::string& key) const {
    if (row.contains(key) && row[key].is_array()) return row[key];
    throw DataError("{}:{}: \"{}\" is {}; expected a list, as on the first line", name_, line_, key,
                    row.contains(key) ? fmt::format("a JSON {}", row[key].type_name()) : "missing");
  }

  std::vector<std::string> tokens(const nlohmann::json& row) const {
    std::vector<std::string> tokens;
    for (const nlohmann::json& token : list(row, token_)) {
      if (!token.is_string())
        throw DataError("{}:{}: a token is a JSON {}; expected strings", name_, line_, token.type_name());
      tokens.push_back(token.get<std::string>());
    }
    return tokens;
  }

  std::vector<std::string> tags(const nlohmann::json& row, size_t count) const {
    std::vector<std::string> tags;
    for (const nlohmann::json& tag : list(row, tag_)) tags.push_back(tag_name(tag));
    if (tags.size() == count) return tags;
    throw DataError("{}:{}: {} and {}; expected a tag per token", name_, line_,
                    counted(static_cast<int64_t>(count), "token"), counted(std::ssize(tags), "tag"));
  }

  std::string tag_name(const nlohmann::json& tag) const {
    if (tag.is_string() && !tag.get_ref<const std::string&>().empty()) return tag.get<std::string>();
    const auto number = whole_number(tag);
    if (!number) throw DataError("{}:{}: the tag {} is not a name", name_, line_, tag.dump().substr(0, 40));
    const std::vector<std::string>& names = options_.tag_names;
    if (names.empty() && options_.numbers_are_names) return std::to_string(*number);
    if (names.empty()) {
      throw DataError(
          "{}:{}: the tag {} is a number; name the tags in their order: {}: [O, B-PER, I-PER, ...]", name_,
          line_, *number, options_.names("tag_names"));
    }
    if (*number < 0 || *number >= std::ssize(names)) {
      throw DataError(
          "{}:{}: the tag {} has no name; there are {}, numbered from 0 ({}, or those of the model)", name_,
          line_, *number, names.size(), options_.names("tag_names"));
    }
    return names[static_cast<size_t>(*number)];
  }

  const std::string& name_;
  const TaggedOptions& options_;
  int64_t line_ = 0;
  std::string token_, tag_;
  TaggedCorpus corpus_;
};

// Replaces BILOU's prefixes by those of IOBES, which lenient_spans supports.
std::vector<std::string> with_known_prefixes(std::vector<std::string> tags) {
  for (std::string& tag : tags) {
    if (tag.starts_with("U-")) tag[0] = 'S';
    if (tag.starts_with("L-")) tag[0] = 'E';
  }
  return tags;
}

void convert(TaggedCorpus& corpus, TagScheme scheme) {
  for (TaggedSentence& sentence : corpus.sentences)
    sentence.tags = write_tags(lenient_spans(with_known_prefixes(std::move(sentence.tags))),
                               sentence.tokens.size(), scheme);
}

}  // namespace

int64_t TaggedCorpus::tokens() const {
  int64_t count = 0;
  for (const TaggedSentence& sentence : sentences) count += std::ssize(sentence.tokens);
  return count;
}

std::vector<std::string> TaggedCorpus::tag_names() const {
  std::set<std::string> names;
  for (const TaggedSentence& sentence : sentences) names.insert(sentence.tags.begin(), sentence.tags.end());
  return {names.begin(), names.end()};
}

int64_t TaggedCorpus::spans() const {
  int64_t count = 0;
  for (const TaggedSentence& sentence : sentences) count += std::ssize(lenient_spans(sentence.tags));
  return count;
}

TaggedCorpus parse_tagged(std::string_view content, const std::string& name, const TaggedOptions& options) {
  std::string buffer;
  content = decode_text(content, options.encoding, name, buffer, options.names);
  TaggedCorpus corpus = is_json_lines(name) ? JsonCorpusReader(name, options).read(content)
                                            : parse_conll_corpus(content, name, options);
  corpus.name = name;
  if (options.require_tags && !corpus.has_tags)
    throw DataError(
        "{}: the file has no tags; expected a column of tags, such as B-PER and O, in CoNLL files, or a list ner_tags in JSON Lines",
        name);
  if (options.scheme && corpus.has_tags) convert(corpus, *options.scheme);
  return corpus;
}

TaggedCorpus read_tagged(const std::filesystem::path& path, const TaggedOptions& options) {
  const MappedFile file(path);
  return parse_tagged(file.text(), path.string(), options);
}

std::string content_hash(const TaggedCorpus& corpus) {
  std::vector<uint64_t> parts;
  for (const TaggedSentence& sentence : corpus.sentences) {
    parts.push_back(sentence.tokens.size());
    for (const std::string& token : sentence.tokens) parts.push_back(hash64(token));
    for (const std::string& tag : sentence.tags) parts.push_back(hash64(tag));
  }
  return hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

}  // namespace stretto::corpus
