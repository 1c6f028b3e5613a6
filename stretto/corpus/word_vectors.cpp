#include "stretto/corpus/word_vectors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/tsv.h"
#include "stretto/text/utf8.h"

namespace stretto::corpus {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t most_word_bytes = 4096;
constexpr int64_t most_dimensions = 100'000;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_(path), rest_(file_.text()) {
    vectors_.name = path.string();
    if (rest_.starts_with("\x1f\x8b"))
      refuse("compressed by gzip; expected the file itself: decompress it with gunzip");
    if (rest_.starts_with('\x80'))
      refuse(
          "a Python pickle, as gensim's save() writes; expected GloVe's or word2vec's form: load it in Python and call its save_word2vec_format(FILE, binary=True)");
    if (trim(rest_.substr(0, 4096)).empty()) refuse("empty; expected a word and its vector per line");
  }

  WordVectors read() {
    const auto header = read_header();
    vectors_.dimensions = header ? header->second : 0;
    vectors_.format = !header ? "GloVe" : is_text() ? "word2vec text" : "word2vec binary";
    vectors_.format == "word2vec binary" ? read_binary(header->first) : read_lines();
    if (header && std::ssize(vectors_.words) + vectors_.repeated != header->first)
      refuse(fmt::format("{} words, but the first line announces {}",
                         std::ssize(vectors_.words) + vectors_.repeated, header->first));
    return std::move(vectors_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw DataError("{}: {}", vectors_.name, what); }

  // Parses the header "400000 100" of word2vec's formats.
  std::optional<std::pair<int64_t, int64_t>> read_header() {
    std::string_view rest = rest_;
    const auto fields = split(trim(take_line(rest)), ' ');
    if (fields.size() != 2) return std::nullopt;
    const auto words = parse_int(fields[0]), dimensions = parse_int(fields[1]);
    if (!words || !dimensions) return std::nullopt;
    if (*words < 1 || *dimensions < 1 || *dimensions > most_dimensions)
      refuse(fmt::format(
          "line 1: {} words of {} dimensions; expected at least 1 of each, and at most {} dimensions", *words,
          *dimensions, most_dimensions));
    rest_ = rest;
    line_ = 1;
    return std::pair(*words, *dimensions);
  }

  // Whether the line at rest_ ends with as many numbers as a vector has.
  bool is_text() const {
    const auto fields = split(trim(rest_.substr(0, rest_.find('\n'))), ' ');
    const auto wanted = static_cast<size_t>(vectors_.dimensions);
    float value = 0;
    return fields.size() > wanted && std::all_of(fields.end() - vectors_.dimensions, fields.end(),
                                                 [&](std::string_view field) { return parse(field, value); });
  }

  static bool parse(std::string_view field, float& value) {
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    return end == field.data() + field.size() &&
           (error == std::errc() || error == std::errc::result_out_of_range);
  }

  void read_lines() {
    std::vector<float> row;
    while (!rest_.empty()) {
      std::string_view text = take_line(rest_);
      ++line_;
      while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
      if (text.empty() && rest_.empty()) return;
      const auto place = [&] { return fmt::format("line {}", line_); };
      const auto fields = split(text, ' ');
      const auto found = std::ssize(fields) - 1;
      if (vectors_.dimensions == 0) {
        if (found < 1 || found > most_dimensions)
          refuse(fmt::format("{}: {} numbers; expected a word and up to {} numbers, separated by spaces",
                             place(), found, most_dimensions));
        vectors_.dimensions = found;
      }
      if (found < vectors_.dimensions)
        refuse(fmt::format("{}: {} numbers after the word; expected {}, like before", place(),
                           std::max<int64_t>(found, 0), vectors_.dimensions));
      row.clear();
      for (size_t i = fields.size() - static_cast<size_t>(vectors_.dimensions); i < fields.size(); ++i) {
        if (!parse(fields[i], row.emplace_back()))
          refuse(fmt::format("{}: \"{}\" is not a number", place(), fields[i].substr(0, 40)));
      }
      const auto end = static_cast<size_t>(fields[fields.size() - row.size()].data() - text.data());
      add(text.substr(0, end > 0 ? end - 1 : 0), row, place());
    }
  }

  void read_binary(int64_t words) {
    std::vector<float> row(static_cast<size_t>(vectors_.dimensions));
    const size_t bytes = row.size() * sizeof(float);
    for (int64_t i = 1; i <= words; ++i) {
      const std::string place = fmt::format("word {} of {}", i, words);
      if (rest_.starts_with('\n')) rest_.remove_prefix(1);
      const size_t space = rest_.substr(0, most_word_bytes + 1).find(' ');
      if (space == std::string_view::npos || rest_.size() - space - 1 < bytes)
        refuse(place + ": the file ends, or the word is longer than 4096 bytes; it may be cut short");
      std::memcpy(row.data(), rest_.data() + space + 1, bytes);
      add(rest_.substr(0, space), row, place);
      rest_.remove_prefix(space + 1 + bytes);
    }
    if (!trim(rest_.substr(0, 4096)).empty())
      refuse(fmt::format("bytes follow the {} announced words", words));
  }

  void add(std::string_view bytes, const std::vector<float>& row, const std::string& place) {
    if (bytes.empty() || bytes.size() > most_word_bytes)
      refuse(fmt::format("{}: a word of {} bytes; expected 1 to {}", place, bytes.size(), most_word_bytes));
    for (const float value : row)
      if (!std::isfinite(value)) refuse(fmt::format("{}: the vector holds {}", place, value));
    std::string buffer;
    const std::string word(text::replace_invalid_utf8(bytes, buffer));
    if (!seen_.insert(word).second) {
      ++vectors_.repeated;
      return;
    }
    vectors_.words.push_back(word);
    vectors_.values.insert(vectors_.values.end(), row.begin(), row.end());
  }

  MappedFile file_;
  std::string_view rest_;
  int64_t line_ = 0;
  WordVectors vectors_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

WordVectors read_word_vectors(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace stretto::corpus
