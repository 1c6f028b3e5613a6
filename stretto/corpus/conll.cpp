#include "stretto/corpus/conll.h"

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"
#include "stretto/corpus/reader_format.h"
#include "stretto/corpus/tsv.h"

namespace stretto::corpus {
namespace {

std::vector<std::string_view> split_at_spaces(std::string_view line) {
  std::vector<std::string_view> columns;
  for (std::string_view part : split(line, ' '))
    if (!part.empty()) columns.push_back(part);
  return columns;
}

class ConllParser {
 public:
  ConllParser(const std::string& name, bool document_markers) : name_(name), markers_(document_markers) {}

  ConllFile parse(std::string_view content) {
    tabs_ = content.find('\t') != std::string_view::npos;
    int64_t line = 0;
    while (!content.empty()) {
      const std::string_view text = take_line(content);
      ++line;
      require_field_size(text.size(), name_, line);
      add(text, line);
    }
    end_sentence();
    if (file_.sentences.empty())
      throw DataError("{}: the file has no token; expected one token per line with its columns", name_);
    return std::move(file_);
  }

 private:
  void add(std::string_view text, int64_t line) {
    if (trim(text).empty()) return end_sentence();
    if (tabs_ && text.starts_with("# ") && text.find('\t') == std::string_view::npos) return;
    auto columns = tabs_ ? split(text, '\t') : split_at_spaces(text);
    if (markers_ && columns.front() == "-DOCSTART-") {
      end_sentence();
      if (seen_) ++document_;
      return;
    }
    if (file_.columns == 0) {
      file_.columns = columns.size();
      first_line_ = line;
    }
    check(columns, text, line);
    if (sentence_.rows.empty()) sentence_.line = line;
    sentence_.rows.push_back(std::move(columns));
    seen_ = true;
  }

  void check(const std::vector<std::string_view>& columns, std::string_view text, int64_t line) const {
    if (columns.size() != file_.columns) {
      throw DataError(
          "{}:{}: {} (\"{}\"); line {} has {}, separated by {}: every token needs the same columns", name_,
          line, counted(std::ssize(columns), "column"), cut_utf8(text, 60), first_line_, file_.columns,
          tabs_ ? "tabs" : "spaces");
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!trim(columns[i]).empty()) continue;
      throw DataError("{}:{}: column {} is empty; every token needs a value in each column", name_, line,
                      i + 1);
    }
  }

  void end_sentence() {
    if (sentence_.rows.empty()) return;
    sentence_.document = document_;
    file_.sentences.push_back(std::move(sentence_));
    sentence_ = {};
  }

  const std::string& name_;
  bool markers_, tabs_ = false, seen_ = false;
  int64_t first_line_ = 0, document_ = 0;
  ConllFile file_;
  ConllSentence sentence_;
};

}  // namespace

ConllFile parse_conll(std::string_view content, const std::string& name, bool document_markers) {
  return ConllParser(name, document_markers).parse(content);
}

}  // namespace stretto::corpus
