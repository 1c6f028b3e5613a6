#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/compat/job_script.h"

namespace stretto::compat {

// The result of a condition; `unknown`: why it is not known.
struct Truth {
  bool value = false;
  std::string unknown;
  static Truth yes() { return {true, ""}; }
  static Truth no() { return {}; }
  bool is_unknown() const { return !unknown.empty(); }
};

// The size of NAME in a word NAME=... or NAME+=...; 0: the word assigns nothing.
size_t assigned_name(std::string_view word);

// The variables of a shell script while it is read, and what its words mean by them. Functions throw
// ConfigError without a place for what cannot be read.
class ShellVariables {
 public:
  // `folder`: of the script. `given`: values that assignments do not replace.
  ShellVariables(std::filesystem::path folder, const std::map<std::string, std::string>& given);

  void set_line(int64_t line) { line_ = line; }  // of the words that are expanded next, for messages

  // A word with an assigned_name(). `uncertain`: why it is not known whether the script assigns it; "": it
  // does.
  void assign(const std::string& word, const std::string& uncertain);
  void set_unknown(const std::string& name, const std::string& why);
  void unset(const std::string& name);

  // The words that a word becomes.
  std::vector<ShellWord> expand(const std::string& word);

  // Returns whether [ ... ], [[ ... ]], test ... or ((...)) holds. The result of other commands is not known.
  Truth condition(std::vector<std::string> words);

  // The quotients that were rounded so far, each with its line: "28: $(($BATCH / $DP)) is 1, ...".
  const std::vector<RoundedQuotient>& rounded() const { return rounded_; }

 private:
  struct Value {
    std::vector<std::string> items;  // of an array, or one; none: it is not set
    bool is_set() const { return !items.empty(); }
    std::string text() const { return items.empty() ? "" : items.front(); }
  };
  class Fields;

  // A text that stands for a part of a value that is not known, and the reason of the first such part of a
  // text; "": there is none.
  std::string mark(const std::string& why);
  std::string unknown_in(std::string_view text) const;

  Value look_up(const std::string& name) const;
  Value not_read(std::string_view text);
  std::string origin_of(std::string_view text) const;
  void expand_part(std::string_view text, bool is_quoted, Fields& fields);
  // These do not divide the text into words; nullopt: it consists of variables that are not set.
  ShellWord expand_whole(std::string_view text);
  std::optional<std::string> whole_text(std::string_view text, bool is_quoted);

  // shell_substitutions.cpp
  Value substitution(std::string_view text);
  Value braces(std::string_view inside);
  Value arithmetic(std::string_view inside);
  std::string values_of(std::string_view inside) const;
  Value output_of(std::string_view command);

  // shell_conditions.cpp
  Truth expression(const std::vector<std::string>& words);
  Truth either(const std::vector<std::string>& words, size_t at, bool is_or);
  Truth comparison(const std::vector<std::string>& words);

  std::filesystem::path folder_;
  std::set<std::string> given_;
  std::map<std::string, Value> values_;
  std::map<std::string, std::string> origins_;  // of values that were computed, for messages
  std::vector<std::string> reasons_;            // of marks
  std::vector<RoundedQuotient> rounded_;
  int64_t line_ = 0;
};

}  // namespace stretto::compat
