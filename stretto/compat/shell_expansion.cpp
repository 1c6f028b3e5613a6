#include "stretto/compat/shell_expansion.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

#include "stretto/base/strings.h"
#include "stretto/compat/shell_names.h"
#include "stretto/compat/shell_statements.h"

namespace stretto::compat {

size_t assigned_name(std::string_view word) {
  const size_t size = name_size(word);
  const std::string_view rest = word.substr(size);
  return size > 0 && (rest.starts_with('=') || rest.starts_with("+=")) ? size : 0;
}

// The words that expansion has made so far.
class ShellVariables::Fields {
 public:
  explicit Fields(bool splits) : splits_(splits) {}

  void add(std::string_view text) {
    current_ += text;
    has_current_ = true;
  }

  void add(const Value& value, bool is_quoted) {
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) splits_ ? end() : add(" ");
      if (is_quoted || !splits_) {
        add(value.items[i]);
      } else {
        add_words(value.items[i]);
      }
    }
  }

  std::vector<std::string> all() {
    end();
    return std::move(done_);
  }

 private:
  void end() {
    if (has_current_) done_.push_back(std::move(current_));
    current_.clear();
    has_current_ = false;
  }
  void add_words(std::string_view text) {
    bool first = true;
    if (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) end();
    for (const std::string_view word : split_words(text)) {
      if (!first) end();
      first = false;
      add(word);
    }
    if (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) end();
  }

  bool splits_;
  std::string current_;
  bool has_current_ = false;
  std::vector<std::string> done_;
};

ShellVariables::ShellVariables(std::filesystem::path folder, const std::map<std::string, std::string>& given)
    : folder_(std::move(folder)) {
  for (const auto& [name, value] : given) {
    given_.insert(name);
    values_[name] = {{value}};
  }
}

void ShellVariables::set_unknown(const std::string& name, const std::string& why) {
  if (!given_.contains(name)) values_[name] = {{mark(why)}};
}

void ShellVariables::unset(const std::string& name) {
  if (given_.contains(name)) return;
  values_[name] = {};
  origins_.erase(name);
}

void ShellVariables::assign(const std::string& word, const std::string& uncertain) {
  const size_t size = assigned_name(word);
  const std::string name = word.substr(0, size);
  if (given_.contains(name)) return;
  const bool appends = word[size] == '+';
  const std::string_view text = std::string_view(word).substr(size + (appends ? 2 : 1));
  const std::string origin = origin_of(text);
  Value value = appends ? look_up(name) : Value{};
  if (!uncertain.empty()) {
    value.items = {value.text() + mark(uncertain)};
  } else if (text.starts_with('(') && text.ends_with(')')) {
    for (const ShellStatement& statement : shell_statements(text.substr(1, text.size() - 2)))
      for (const std::string& item : statement.words)
        for (ShellWord& expanded : expand(item)) value.items.push_back(std::move(expanded.text));
    if (value.items.empty()) value.items.emplace_back();
  } else {
    value.items = {value.text() + expand_whole(text).text};
  }
  values_[name] = std::move(value);
  origins_.erase(name);
  if (!origin.empty()) origins_[name] = origin;
}

// " (line 3: C is 4, D is 2)" for a text with $((...)), "" for another.
std::string ShellVariables::origin_of(std::string_view text) const {
  if (text.find("$((") == std::string_view::npos) return "";
  std::string values;
  for (const std::string& name : names_in(text)) {
    const std::string value = look_up(name).text();
    if (!value.empty() && unknown_in(value).empty())
      values += fmt::format("{}{} is {}", values.empty() ? "" : ", ", name, short_text(value));
  }
  return values.empty() ? "" : fmt::format(" (line {}: {})", line_, values);
}

std::string ShellVariables::mark(const std::string& why) {
  reasons_.push_back(why);
  return fmt::format("\x01{}\x02", reasons_.size() - 1);
}

std::string ShellVariables::unknown_in(std::string_view text) const {
  const size_t begin = text.find('\x01'), end = text.find('\x02');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  const auto index = parse_int(text.substr(begin + 1, end - begin - 1));
  return index && static_cast<size_t>(*index) < reasons_.size() ? reasons_[static_cast<size_t>(*index)] : "";
}

ShellVariables::Value ShellVariables::look_up(const std::string& name) const {
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? Value{} : Value{{value}};
}

ShellVariables::Value ShellVariables::not_read(std::string_view text) {
  return {{mark(fmt::format("line {}: {} is not read", line_, short_text(text)))}};
}

std::vector<ShellWord> ShellVariables::expand(const std::string& word) {
  Fields fields(/*splits=*/true);
  expand_part(word, /*is_quoted=*/false, fields);
  std::vector<ShellWord> words;
  for (std::string& text : fields.all()) {
    const std::string unknown = unknown_in(text);
    words.push_back({std::move(text), unknown});
  }
  return words;
}

ShellWord ShellVariables::expand_whole(std::string_view text) {
  const auto whole = whole_text(text, /*is_quoted=*/false);
  return whole ? ShellWord{*whole, unknown_in(*whole)} : ShellWord{};
}

std::optional<std::string> ShellVariables::whole_text(std::string_view text, bool is_quoted) {
  Fields fields(/*splits=*/false);
  expand_part(text, is_quoted, fields);
  const auto words = fields.all();
  return words.empty() ? std::nullopt : std::optional(words.front());
}

void ShellVariables::expand_part(std::string_view text, bool is_quoted, Fields& fields) {
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t end = shell_end(text, at);
    const std::string_view part = text.substr(at, end - at);
    if (c == '\'' && !is_quoted) {
      fields.add(part.substr(1, part.size() - 2));
    } else if (c == '"' && !is_quoted) {
      fields.add("");
      expand_part(part.substr(1, part.size() - 2), /*is_quoted=*/true, fields);
    } else if (c == '\\') {
      const bool keeps = is_quoted && part.size() == 2 &&
                         std::string_view("$`\"\\\n").find(part[1]) == std::string_view::npos;
      fields.add(keeps ? part : part.substr(1));
    } else if (c == '$' || c == '`') {
      size_t size = part.size();
      if (size == 1 && c == '$') {  // $NAME
        const std::string_view name = text.substr(at + 1);
        size = 1 + std::max<size_t>(name_size(name),
                                    !name.empty() && std::string_view("@*#?$!0123456789-").find(name[0]) !=
                                                         std::string_view::npos
                                        ? 1
                                        : 0);
      }
      fields.add(substitution(text.substr(at, size)), is_quoted);
      at += size;
      continue;
    } else if (c == '~' && at == 0 && !is_quoted && (text.size() == 1 || text[1] == '/')) {
      fields.add(look_up("HOME"), /*is_quoted=*/true);
    } else {
      fields.add(is_quoted ? text.substr(at, 1) : part);
      at += is_quoted ? 1 : part.size();
      continue;
    }
    at = end;
  }
}

}  // namespace stretto::compat
