#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <arrow/array.h>

namespace stretto::columnar {

// Appends `text` as a JSON string, with its bytes.
void append_json(std::string_view text, std::string& json);

// Appends value `i` of an array: null, true or false, a number, a text, a list or an object. Values of other
// types, such as times, are Arrow's texts; numbers that are not finite are null. Throws std::runtime_error.
void append_json(const arrow::Array& array, int64_t i, std::string& json);

}  // namespace stretto::columnar
