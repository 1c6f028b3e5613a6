#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Checks of the values of options. Each returns an error message, or "".
namespace stretto::arguments {

using Check = std::function<std::string(const std::string& text)>;

// Rejects an empty value and one that begins with '-', which CLI11 takes from the next word in "--strat= --
// program".
std::string a_name(const std::string& text);

Check whole_number_from(int64_t least, int64_t most);
Check number_from(int64_t least, int64_t most);
std::string a_number(const std::string& text);
std::string a_number_above_zero(const std::string& text);
std::string a_share(const std::string& text);  // above 0, at most 1

}  // namespace stretto::arguments
