#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Checks for the values of options. Each returns what is wrong, or "".
namespace stretto::arguments {

using Check = std::function<std::string(const std::string& text)>;

// The value may neither be empty nor begin with '-', as where "--strat= -- program" takes the next word.
std::string a_name(const std::string& text);

Check whole_number_from(int64_t least, int64_t most);
Check number_from(int64_t least, int64_t most);
std::string a_number_above_zero(const std::string& text);

}  // namespace stretto::arguments
