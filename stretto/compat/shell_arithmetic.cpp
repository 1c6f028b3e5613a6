#include "stretto/compat/shell_arithmetic.h"

#include <array>
#include <cctype>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::compat {
namespace {

// Operators by how strongly they bind, the weakest first. Longer ones come before those that they begin with.
constexpr std::array<std::array<std::string_view, 4>, 6> levels = {{
    {"||"},
    {"&&"},
    {"==", "!="},
    {"<=", ">=", "<", ">"},
    {"+", "-"},
    {"*", "/", "%"},
}};

class Parser {
 public:
  Parser(std::string_view text, const std::function<int64_t(const std::string&)>& variable)
      : text_(text), variable_(variable) {}

  ShellNumber all() {
    result_.value = binary(0);
    if (!rest().empty()) refuse();
    return result_;
  }

 private:
  std::string_view rest() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return text_.substr(at_);
  }

  [[noreturn]] void refuse() {
    const std::string_view there = rest();
    throw ConfigError("$(({})) cannot be read{}; expected numbers, variables and + - * / %", text_,
                      there.empty() ? std::string(" to its end") : fmt::format(" from \"{}\" on", there));
  }

  bool takes(std::string_view word) {
    if (word.empty() || !rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  int64_t binary(size_t level) {
    if (level == levels.size()) return unary();
    int64_t value = binary(level + 1);
    while (true) {
      std::string_view used;
      for (const std::string_view each : levels[level])
        if (used.empty() && takes(each)) used = each;
      if (used.empty()) return value;
      value = apply(used, value, binary(level + 1));
    }
  }

  int64_t apply(std::string_view used, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflows = false;
    if (used == "||") return a != 0 || b != 0;
    if (used == "&&") return a != 0 && b != 0;
    if (used == "==") return a == b;
    if (used == "!=") return a != b;
    if (used == "<=") return a <= b;
    if (used == ">=") return a >= b;
    if (used == "<") return a < b;
    if (used == ">") return a > b;
    if (used == "+") overflows = __builtin_add_overflow(a, b, &result);
    if (used == "-") overflows = __builtin_sub_overflow(a, b, &result);
    if (used == "*") overflows = __builtin_mul_overflow(a, b, &result);
    if (used == "/" || used == "%") {
      if (b == 0) {
        result_.divides_by_zero = true;
        return 1;
      }
      overflows = a == INT64_MIN && b == -1;
      if (!overflows) result = used == "/" ? quotient(a, b) : a % b;
    }
    if (overflows) throw ConfigError("$(({})) is too large", text_);
    return result;
  }

  int64_t quotient(int64_t a, int64_t b) {
    if (a % b != 0 && result_.rounded.empty()) result_.rounded = fmt::format("{} / {}", a, b);
    return a / b;
  }

  int64_t unary() {
    if (takes("-")) return apply("-", 0, deeper());
    if (takes("+")) return deeper();
    if (takes("!")) return deeper() == 0;
    if (takes("(")) {
      if (++depth_ > most_depth) refuse();
      const int64_t value = binary(0);
      --depth_;
      if (!takes(")")) refuse();
      return value;
    }
    const std::string_view there = rest();
    size_t size = 0;
    while (size < there.size() &&
           (std::isalnum(static_cast<unsigned char>(there[size])) != 0 || there[size] == '_'))
      ++size;
    if (size == 0) refuse();
    const std::string word(there.substr(0, size));
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) {
      at_ += size;
      return variable_(word);
    }
    const auto number = parse_int(word);
    if (!number) refuse();
    at_ += size;
    return *number;
  }

  int64_t deeper() {
    if (++depth_ > most_depth) refuse();
    const int64_t value = unary();
    --depth_;
    return value;
  }

  static constexpr int most_depth = 100;
  std::string_view text_;
  const std::function<int64_t(const std::string&)>& variable_;
  size_t at_ = 0;
  int depth_ = 0;
  ShellNumber result_;
};

}  // namespace

ShellNumber shell_arithmetic(std::string_view text,
                             const std::function<int64_t(const std::string&)>& variable) {
  return Parser(text, variable).all();
}

}  // namespace stretto::compat
