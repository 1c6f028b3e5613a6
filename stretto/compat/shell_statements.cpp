#include "stretto/compat/shell_statements.h"

#include <algorithm>
#include <utility>

#include "stretto/base/error.h"

namespace stretto::compat {
namespace {

constexpr size_t most_depth = 50;

size_t end_of(std::string_view text, size_t begin, size_t depth);

// The end of a text in brackets of one kind, in which quotes and inner brackets are skipped.
size_t end_of_brackets(std::string_view text, size_t inside, char close, size_t depth) {
  for (size_t at = inside; at < text.size();) {
    if (text[at] == close) return at + 1;
    at = end_of(text, at, depth + 1);
  }
  return text.size();
}

size_t end_of(std::string_view text, size_t begin, size_t depth) {
  const char c = text[begin];
  const std::string_view next = text.substr(begin + 1);
  if (depth > most_depth) return text.size();
  if (c == '\\') return std::min(text.size(), begin + 2);
  if (c == '\'') {
    const size_t end = text.find('\'', begin + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  if (c == '"') {
    for (size_t at = begin + 1; at < text.size();) {
      if (text[at] == '"') return at + 1;
      const bool is_special = text[at] == '\\' || text[at] == '$' || text[at] == '`';
      at = is_special ? end_of(text, at, depth + 1) : at + 1;
    }
    return text.size();
  }
  if (c == '`') {
    for (size_t at = begin + 1; at < text.size(); at += text[at] == '\\' ? 2 : 1)
      if (text[at] == '`') return at + 1;
    return text.size();
  }
  if (c == '$' && next.starts_with('(')) return end_of_brackets(text, begin + 2, ')', depth);
  if (c == '$' && next.starts_with('{')) return end_of_brackets(text, begin + 2, '}', depth);
  if (c == '(') return end_of_brackets(text, begin + 1, ')', depth);
  return begin + 1;
}

class Splitter {
 public:
  explicit Splitter(std::string_view script) : text_(script) {}

  std::vector<ShellStatement> all() {
    while (at_ < text_.size()) step();
    end_statement(";");
    return std::move(statements_);
  }

 private:
  bool in_condition() const {  // of [[ ... ]], in which && and || do not end a statement
    const auto ends = std::ranges::count(current_.words, "]]") + (word_ == "]]" ? 1 : 0);
    return std::ranges::count(current_.words, "[[") > ends;
  }

  void end_word() {
    if (!in_word_) return;
    if (skips_word_) {  // the target of a redirection
      skips_word_ = false;
    } else {
      if (current_.words.empty()) current_.line = word_line_;
      current_.words.push_back(std::move(word_));
    }
    word_.clear();
    in_word_ = false;
  }

  void end_statement(const std::string& then) {
    end_word();
    skips_word_ = false;
    if (current_.words.empty()) return;
    current_.then = then;
    statements_.push_back(std::exchange(current_, {}));
  }

  void add(size_t end) {
    if (!in_word_) word_line_ = line_;
    in_word_ = true;
    const std::string_view part = text_.substr(at_, end - at_);
    word_ += part;
    line_ += std::ranges::count(part, '\n');
    at_ = end;
  }

  // A redirection such as >file, 2>&1 or <<END, whose operator begins here.
  void skip_redirection() {
    if (word_.find_first_not_of("0123456789") == std::string::npos) {  // of the stream: 2>file
      word_.clear();
      in_word_ = false;
    }
    end_word();
    const bool is_document = text_.substr(at_).starts_with("<<") && !text_.substr(at_).starts_with("<<<");
    while (at_ < text_.size() && std::string_view("<>&|-").find(text_[at_]) != std::string_view::npos) ++at_;
    if (!is_document) {
      skips_word_ = true;
      return;
    }
    const size_t end = text_.find_first_of(" \t\n;|&", at_);
    std::string mark(text_.substr(at_, end == std::string_view::npos ? end : end - at_));
    std::erase_if(mark, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
    at_ = std::min(text_.size(), end);
    documents_.push_back(mark);
  }

  // After the end of a line: the lines of documents (<<END).
  void skip_documents() {
    for (const std::string& mark : documents_) {
      while (at_ < text_.size()) {
        const size_t end = std::min(text_.size(), text_.find('\n', at_));
        std::string_view content = text_.substr(at_, end - at_);
        at_ = std::min(text_.size(), end + 1);
        ++line_;
        while (content.starts_with('\t')) content.remove_prefix(1);
        if (content == mark) break;
      }
    }
    documents_.clear();
  }

  void step() {
    const char c = text_[at_];
    const std::string_view here = text_.substr(at_);
    if (const size_t size = here.starts_with("\\\n") ? 2 : here.starts_with("\\\r\n") ? 3 : 0; size > 0) {
      at_ += size;
      ++line_;
    } else if (c == '\n') {
      end_statement(";");
      ++at_;
      ++line_;
      skip_documents();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
      ++at_;
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.size(), text_.find('\n', at_));
    } else if (c == '<' || c == '>' || here.starts_with("&>")) {
      if (in_condition()) return add(at_ + 1);
      skip_redirection();
    } else if (!in_condition() && (c == ';' || c == '&' || c == '|')) {
      operator_here(here);
    } else {
      const bool arithmetic = here.starts_with("((") && !in_word_;
      const int64_t first = line_;
      const size_t end = shell_end(text_, at_);
      const bool opens =
          c == '\'' || c == '"' || c == '`' || c == '(' || here.starts_with("$(") || here.starts_with("${");
      if (opens && end == text_.size() && !is_closed(here, c))
        throw ConfigError("{}: {} is not closed", first,
                          arithmetic ? "((" : here.substr(0, c == '$' ? 2 : 1));
      add(end);
    }
  }

  static bool is_closed(std::string_view all, char open) {
    const char close = open == '(' || all.starts_with("$(") ? ')' : open == '$' ? '}' : open;
    return all.size() > 1 && all.back() == close;
  }

  void operator_here(std::string_view here) {
    for (const std::string_view each : {"&&", "||", ";;", "|&", ";", "|", "&"}) {
      if (!here.starts_with(each)) continue;
      end_statement(each == "|&" ? "|" : each == ";;" ? ";" : std::string(each));
      at_ += each.size();
      return;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1, word_line_ = 1;
  bool in_word_ = false, skips_word_ = false;
  std::string word_;
  ShellStatement current_;
  std::vector<ShellStatement> statements_;
  std::vector<std::string> documents_;
};

}  // namespace

size_t shell_end(std::string_view text, size_t begin) { return end_of(text, begin, 0); }

std::vector<ShellStatement> shell_statements(std::string_view script) { return Splitter(script).all(); }

}  // namespace stretto::compat
