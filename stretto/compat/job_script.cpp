#include "stretto/compat/job_script.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/compat/shell_expansion.h"
#include "stretto/compat/shell_statements.h"

namespace stretto::compat {
namespace {

const std::set<std::string, std::less<>>& declaring_words() {
  static const std::set<std::string, std::less<>> words = {"export", "declare", "local", "readonly",
                                                           "typeset"};
  return words;
}

// The position of torchrun among the words of a command, which may follow another program (srun, exec).
std::optional<size_t> find_torchrun(const std::vector<ShellWord>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name = std::filesystem::path(words[i].text).filename().string();
    if (name == "torchrun") return i;
    const bool is_module = name == "torch.distributed.run" || name == "torch.distributed.launch";
    if (is_module && i > 0 && words[i - 1].text == "-m") return i;
  }
  return std::nullopt;
}

bool is_loop(const std::string& word) {
  return word == "for" || word == "while" || word == "until" || word == "select";
}

// An if, and what is known of its branches.
struct Branches {
  int64_t line = 0;
  bool is_taken = false;  // one of its branches was read, so that others are not
  bool is_read = false;   // the current branch is
  std::string unknown;    // why it is not known which branch is taken
};

class Interpreter {
 public:
  Interpreter(const std::filesystem::path& file, const std::map<std::string, std::string>& given)
      : file_(file), given_(given), variables_(std::filesystem::absolute(file).parent_path(), given) {}

  JobCommand run() {
    const std::string text = read_file(file_);
    try {
      statements_ = shell_statements(text);
    } catch (const ConfigError& error) {
      throw ConfigError("{}:{}", file_.string(), error.what());
    }
    require_given(text);
    for (at_ = 0; at_ < statements_.size() && !command_; ++at_) {
      variables_.set_line(statements_[at_].line);
      try {
        read(ShellStatement(statements_[at_]));
      } catch (const ConfigError& error) {
        throw ConfigError("{}:{}: {}", file_.string(),
                          statements_[std::min(at_, statements_.size() - 1)].line, error.what());
      }
    }
    const int64_t open = unclosed();
    if (!command_)
      throw ConfigError("{}: {}; expected a job script that starts run_llama_nxd_ptl.py, or a recipe",
                        file_.string(),
                        open > 0 ? counted(open, "if") + " without fi, and no torchrun before it"
                                 : std::string("it starts nothing by torchrun"));
    if (open > 0)
      notes_.push_back(fmt::format("{}: {} without fi, at which bash ends with an error", file_.string(),
                                   counted(open, "if")));
    command_->notes = std::move(notes_);
    for (const auto& [text, value] : variables_.rounded())
      command_->rounded.push_back({fmt::format("{}:{}", file_.string(), text), value});
    return std::move(*command_);
  }

 private:
  // Throws if the text does not contain the name of a given variable.
  void require_given(const std::string& text) const {
    std::vector<std::string> names;
    for (const ShellStatement& statement : statements_)
      for (const std::string& word : statement.words)
        if (const size_t size = assigned_name(word); size > 0) names.push_back(word.substr(0, size));
    for (const auto& [name, value] : given_) {
      if (!name.starts_with("SLURM_") && text.find(name) == std::string::npos)  // --nodes gives those
        throw ConfigError("{}: it has no variable {}{}", file_.string(), name, did_you_mean(name, names));
    }
  }

  // How many more ifs than fis the script has.
  int64_t unclosed() const {
    int64_t open = 0;
    for (const ShellStatement& statement : statements_)
      open += statement.words[0] == "if" ? 1 : statement.words[0] == "fi" ? -1 : 0;
    return open;
  }

  bool reads() const {
    return std::ranges::all_of(branches_, [](const Branches& each) { return each.is_read; });
  }
  bool reads_outside() const {  // of the innermost if
    return std::all_of(branches_.begin(), branches_.end() - 1,
                       [](const Branches& each) { return each.is_read; });
  }
  std::string uncertain() const {
    for (const Branches& each : branches_)
      if (!each.unknown.empty()) return each.unknown;
    return "";
  }

  // The truth of the conditions from the words behind `if` up to then.
  Truth condition(const std::vector<std::string>& first) {
    Truth truth = Truth::yes();
    std::string joined = ";";
    std::vector<std::string> words = first;
    while (true) {
      if (!words.empty() && (joined == ";" || truth.is_unknown() || (joined == "&&") == truth.value)) {
        const Truth own = variables_.condition(words);
        if (joined == ";" || !truth.is_unknown()) truth = own;
      }
      joined = statements_[at_].then;
      if (at_ + 1 == statements_.size() || statements_[at_ + 1].words[0] == "then") return truth;
      words = statements_[++at_].words;
    }
  }

  void take(const Truth& truth) {
    Branches& branches = branches_.back();
    const bool outside = reads_outside();
    branches.is_read = outside && !branches.is_taken && (truth.is_unknown() || truth.value);
    if (truth.is_unknown() && outside) branches.unknown = truth.unknown;
    branches.is_taken = branches.is_taken || (!truth.is_unknown() && truth.value);
  }

  void read(const ShellStatement& statement) {
    const std::string& word = statement.words[0];
    const std::vector<std::string> rest(statement.words.begin() + 1, statement.words.end());
    if (word == "if") {
      branches_.emplace_back().line = statement.line;
      take(reads_outside() ? condition(rest) : skipped_condition());
    } else if (word == "elif" && !branches_.empty()) {
      branches_.back().is_read = false;
      const bool open = !branches_.back().is_taken && reads_outside();
      take(open ? condition(rest) : skipped_condition());
    } else if (word == "else" && !branches_.empty()) {
      branches_.back().is_read = false;
      take(Truth::yes());
      read_rest(rest);
    } else if (word == "fi" && !branches_.empty()) {
      branches_.pop_back();
    } else if (word == "then" || word == "{" || word == "!") {
      read_rest(rest);
    } else if (is_loop(word) || word == "case") {
      skip_compound(word == "case" ? "esac" : "done");
    } else if (word == "function" || word.ends_with("()")) {
      skip_function();
    } else if (word != "}" && reads()) {
      read_list();
    }
  }

  Truth skipped_condition() {
    while (at_ + 1 < statements_.size() && statements_[at_ + 1].words[0] != "then") ++at_;
    return Truth::no();
  }

  // What follows `then` or `else` on its line.
  void read_rest(const std::vector<std::string>& rest) {
    if (rest.empty()) return;
    statements_[at_].words = rest;
    read(ShellStatement(statements_[at_]));
  }

  // A loop or a case: what it assigns is not known.
  void skip_compound(const std::string& end) {
    const std::string kind = statements_[at_].words[0];
    const std::string why = fmt::format("line {}: it is assigned in a {}", statements_[at_].line, kind);
    if (kind == "for" && statements_[at_].words.size() > 1 && reads())
      variables_.set_unknown(statements_[at_].words[1], why);
    int64_t depth = 0;
    for (; at_ < statements_.size(); ++at_) {
      const std::vector<std::string>& words = statements_[at_].words;
      const bool opens = end == "esac" ? words[0] == "case" : is_loop(words[0]);
      depth += opens ? 1 : words[0] == end ? -1 : 0;
      for (const std::string& word : words) {
        if (const size_t size = assigned_name(word); size > 0 && reads())
          variables_.set_unknown(word.substr(0, size), why);
      }
      if (depth == 0) return;
    }
  }

  void skip_function() {
    int64_t depth = 0;
    for (bool began = false; at_ < statements_.size(); ++at_) {
      for (const std::string& word : statements_[at_].words) {
        depth += word == "{" ? 1 : word == "}" ? -1 : 0;
        began = began || word == "{";
      }
      if (began && depth <= 0) return;
    }
  }

  // Statements that && and || join: [ -z "$A" ] && A=1.
  void read_list() {
    Truth truth = Truth::yes();
    for (std::string joined = ";";; ++at_) {
      const ShellStatement& statement = statements_[at_];
      variables_.set_line(statement.line);
      if (joined == ";" && statement.words[0] == "exit" && uncertain().empty())
        throw ConfigError("the script ends here ({}), before torchrun; give other variables as NAME=VALUE",
                          fmt::join(statement.words, " "));
      if (joined == ";" || truth.is_unknown() || (joined == "&&") == truth.value) {
        branches_.push_back({.line = statement.line, .is_read = true, .unknown = truth.unknown});
        const Truth own = read_simple(statement);
        branches_.pop_back();
        if (!truth.is_unknown()) truth = own;
      }
      joined = statement.then;
      const bool is_joined = joined == "&&" || joined == "||";
      if (command_ || !is_joined || at_ + 1 == statements_.size()) return;
    }
  }

  Truth read_simple(const ShellStatement& statement) {
    const std::string& first = statement.words[0];
    if (first == "[" || first == "[[" || first == "test" || first.starts_with("(("))
      return variables_.condition(statement.words);
    const bool is_subshell = first.starts_with('(') && first.find("torchrun") != std::string::npos;
    if (first == "{" || is_subshell)
      throw ConfigError("a group in {} is not read; write it with if ... fi, or as lines of the script",
                        first == "{" ? "{ }" : "( )");
    size_t next = declaring_words().contains(first) ? 1 : 0;
    for (; next < statement.words.size(); ++next) {
      const std::string& word = statement.words[next];
      if (next > 0 && word.starts_with('-') && declaring_words().contains(first)) continue;
      if (assigned_name(word) == 0) break;
      variables_.assign(word, uncertain());
    }
    if (next == statement.words.size() || declaring_words().contains(first)) return Truth::yes();
    if (first == "source" || first == ".") {
      notes_.push_back(fmt::format("{}:{}: {} is not read", file_.string(), statement.line,
                                   fmt::join(statement.words, " ")));
      return Truth::yes();
    }
    if (first == "unset") {
      for (size_t i = 1; i < statement.words.size(); ++i) variables_.unset(statement.words[i]);
      return Truth::yes();
    }
    return read_command(statement, next);
  }

  Truth read_command(const ShellStatement& statement, size_t next) {
    std::vector<ShellWord> words;
    for (size_t i = next; i < statement.words.size(); ++i)
      for (ShellWord& word : variables_.expand(statement.words[i])) words.push_back(std::move(word));
    const bool prints = !words.empty() && (words[0].text == "echo" || words[0].text == "printf");
    const auto torchrun = prints ? std::nullopt : find_torchrun(words);
    if (!torchrun) return Truth::yes();
    if (const std::string why = uncertain(); !why.empty())
      throw ConfigError("it is not known whether this torchrun is run ({}); give the variable as NAME=VALUE",
                        why);
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(*torchrun));
    command_ = {std::move(words), statement.line, {}, {}};
    return Truth::yes();
  }

  const std::filesystem::path& file_;
  const std::map<std::string, std::string>& given_;
  ShellVariables variables_;
  std::vector<ShellStatement> statements_;
  size_t at_ = 0;
  std::vector<Branches> branches_;
  std::vector<std::string> notes_;
  std::optional<JobCommand> command_;
};

}  // namespace

JobCommand read_job_script(const std::filesystem::path& file,
                           const std::map<std::string, std::string>& given) {
  return Interpreter(file, given).run();
}

}  // namespace stretto::compat
