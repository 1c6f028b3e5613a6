#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace stretto::compat {

// The value of the inside of bash's $((...)): whole numbers, names of variables, parentheses, + - * / %,
// comparisons, && and ||. `variable`: the value of a name. Throws ConfigError without a place for anything
// else, and for a division by 0.
int64_t shell_arithmetic(std::string_view text, const std::function<int64_t(const std::string&)>& variable);

}  // namespace stretto::compat
