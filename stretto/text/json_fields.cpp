#include "stretto/text/json_fields.h"

#include <limits>

#include "stretto/base/error.h"

namespace stretto::text {
namespace {

constexpr int64_t largest_json_id = std::numeric_limits<int32_t>::max();

}  // namespace

void JsonField::expected(const char* what) const {
  const std::string found = value_.is_array()    ? "list"
                            : value_.is_number() ? "the number " + value_.dump()
                                                 : value_.type_name();
  throw DataError("{} expected {}, found {}", begin(), what, found);
}

std::string JsonField::begin() const { return is_top() ? place_ : place_ + ":"; }

JsonField JsonField::operator[](const char* key) const {
  const auto& object = as_object();
  const auto found = object.find(key);
  if (found == object.end()) throw DataError("{} lacks \"{}\"", begin(), key);
  // "file: a.b", not "file: .a.b"
  return {*found, place_ + (is_top() ? " " : ".") + key};
}

JsonField JsonField::operator[](size_t index) const {
  const auto& list = as_list();
  if (index >= list.size())
    throw DataError("{}: expected at least {} items, found {}", place_, index + 1, list.size());
  return {list[index], place_ + "[" + std::to_string(index) + "]"};
}

bool JsonField::has(const char* key) const {
  const auto& object = as_object();
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

bool JsonField::as_bool() const {
  if (!value_.is_boolean()) expected("true or false");
  return value_.get<bool>();
}

int32_t JsonField::as_id() const {
  if (!value_.is_number_integer()) expected("a whole number");
  const auto value = value_.get<int64_t>();
  if (value < 0 || value > largest_json_id)
    throw DataError("{}: {} is not between 0 and {}", place_, value_.dump(), largest_json_id);
  return static_cast<int32_t>(value);
}

double JsonField::as_number() const {
  if (!value_.is_number()) expected("a number");
  return value_.get<double>();
}

const std::string& JsonField::as_string() const {
  if (!value_.is_string()) expected("a string");
  return value_.get_ref<const std::string&>();
}

std::vector<VocabularyEntry> JsonField::as_vocabulary() const {
  std::vector<VocabularyEntry> vocabulary;
  vocabulary.reserve(as_object().size());
  for (const auto& [token, id] : value_.items()) {
    // Places are formatted for errors only: a vocabulary has tens of thousands of entries.
    const bool good = id.is_number_unsigned() && id.get<uint64_t>() <= static_cast<uint64_t>(largest_json_id);
    vocabulary.push_back(
        {token, good ? id.get<int32_t>() : JsonField(id, place_ + ": \"" + token + "\"").as_id()});
  }
  return vocabulary;
}

void JsonField::unavailable(const std::string& type, const char* available) const {
  const bool several = std::string_view(available).find(" and ") != std::string_view::npos;
  throw DataError("{}.type: \"{}\" is not available; available {} {}", place_, type, several ? "are" : "is",
                  available);
}

const nlohmann::json& JsonField::as_object() const {
  if (!value_.is_object()) expected("an object");
  return value_;
}

const nlohmann::json& JsonField::as_list() const {
  if (!value_.is_array()) expected("a list");
  return value_;
}

}  // namespace stretto::text
