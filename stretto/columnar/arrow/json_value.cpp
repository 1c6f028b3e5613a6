#include "stretto/columnar/arrow/json_value.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include <arrow/array/array_binary.h>
#include <arrow/array/array_dict.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>

namespace stretto::columnar {
namespace {

template <class Number>
void append_number(Number number, std::string& json) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) {
      json += "null";
      return;
    }
  }
  char text[32];
  json.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

template <class Array>
void append_list(const arrow::Array& array, int64_t i, std::string& json) {
  const auto& lists = static_cast<const Array&>(array);
  const int64_t begin = lists.value_offset(i), end = begin + lists.value_length(i);
  json += '[';
  for (int64_t item = begin; item < end; ++item) {
    if (item > begin) json += ',';
    append_json(*lists.values(), item, json);
  }
  json += ']';
}

void append_object(const arrow::StructArray& objects, int64_t i, std::string& json) {
  json += '{';
  for (int field = 0; field < objects.num_fields(); ++field) {
    if (field > 0) json += ',';
    append_json(objects.type()->field(field)->name(), json);
    json += ':';
    append_json(*objects.field(field), i, json);
  }
  json += '}';
}

void append_other(const arrow::Array& array, int64_t i, std::string& json) {
  const auto scalar = array.GetScalar(i);
  if (!scalar.ok()) throw std::runtime_error(scalar.status().ToString());
  append_json((*scalar)->ToString(), json);
}

template <class Array>
void append_text(const arrow::Array& array, int64_t i, std::string& json) {
  append_json(static_cast<const Array&>(array).GetView(i), json);
}

template <class Array>
void append_number_of(const arrow::Array& array, int64_t i, std::string& json) {
  append_number(static_cast<const Array&>(array).Value(i), json);
}

}  // namespace

void append_json(std::string_view text, std::string& json) {
  constexpr char hex[] = "0123456789abcdef";
  json += '"';
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    json.append(text, copied, i - copied);
    copied = i + 1;
    if (c == '\n') {
      json += "\\n";
    } else if (c < 0x20) {
      json += {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    } else {
      json += {'\\', text[i]};
    }
  }
  json.append(text, copied);
  json += '"';
}

void append_json(const arrow::Array& array, int64_t i, std::string& json) {
  if (array.IsNull(i)) {
    json += "null";
    return;
  }
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      json += static_cast<const arrow::BooleanArray&>(array).Value(i) ? "true" : "false";
      return;
    case arrow::Type::INT8:
      return append_number_of<arrow::Int8Array>(array, i, json);
    case arrow::Type::INT16:
      return append_number_of<arrow::Int16Array>(array, i, json);
    case arrow::Type::INT32:
      return append_number_of<arrow::Int32Array>(array, i, json);
    case arrow::Type::INT64:
      return append_number_of<arrow::Int64Array>(array, i, json);
    case arrow::Type::UINT8:
      return append_number_of<arrow::UInt8Array>(array, i, json);
    case arrow::Type::UINT16:
      return append_number_of<arrow::UInt16Array>(array, i, json);
    case arrow::Type::UINT32:
      return append_number_of<arrow::UInt32Array>(array, i, json);
    case arrow::Type::UINT64:
      return append_number_of<arrow::UInt64Array>(array, i, json);
    case arrow::Type::FLOAT:
      return append_number_of<arrow::FloatArray>(array, i, json);
    case arrow::Type::DOUBLE:
      return append_number_of<arrow::DoubleArray>(array, i, json);
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return append_text<arrow::BinaryArray>(array, i, json);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return append_text<arrow::LargeBinaryArray>(array, i, json);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return append_text<arrow::BinaryViewArray>(array, i, json);
    case arrow::Type::LIST:
      return append_list<arrow::ListArray>(array, i, json);
    case arrow::Type::LARGE_LIST:
      return append_list<arrow::LargeListArray>(array, i, json);
    case arrow::Type::FIXED_SIZE_LIST:
      return append_list<arrow::FixedSizeListArray>(array, i, json);
    case arrow::Type::STRUCT:
      return append_object(static_cast<const arrow::StructArray&>(array), i, json);
    case arrow::Type::DICTIONARY: {
      const auto& indices = static_cast<const arrow::DictionaryArray&>(array);
      return append_json(*indices.dictionary(), indices.GetValueIndex(i), json);
    }
    case arrow::Type::EXTENSION:
      return append_json(*static_cast<const arrow::ExtensionArray&>(array).storage(), i, json);
    default:
      return append_other(array, i, json);
  }
}

}  // namespace stretto::columnar
