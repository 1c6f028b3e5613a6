#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace stretto::compat {

struct ShellNumber {
  int64_t value = 0;
  bool divides_by_zero = false;  // `value` means nothing then
  std::string rounded;           // "7 / 4", the first quotient that is not whole, which bash rounds; "": none
};

// The value of the inside of bash's $((...)): whole numbers, names of variables, parentheses, + - * / %,
// comparisons, && and ||. `variable`: the value of a name. Throws ConfigError without a place for anything
// else.
ShellNumber shell_arithmetic(std::string_view text,
                             const std::function<int64_t(const std::string&)>& variable);

}  // namespace stretto::compat
