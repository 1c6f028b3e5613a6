#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::compat {

// The size of the name of a variable with which `text` begins; 0: it begins with none.
size_t name_size(std::string_view text);

// The names of variables in the inside of $((...)), in order.
std::vector<std::string> names_in(std::string_view inside);

// The first characters of `text`, for messages.
std::string short_text(std::string_view text);

}  // namespace stretto::compat
