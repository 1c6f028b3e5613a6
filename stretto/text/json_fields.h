#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/text/vocabulary.h"

namespace stretto::text {

// A value of a JSON file with its path in the file, for messages. Every accessor
// throws DataError: `tokenizer.json: model.vocab: expected an object, found a list`.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string place) : value_(value), place_(std::move(place)) {}

  JsonField operator[](const char* key) const;  // throws if this is no object or lacks `key`
  JsonField operator[](size_t index) const;     // throws if this is no list or too short
  bool has(const char* key) const;              // whether `key` exists and is not null

  bool is_object() const { return value_.is_object(); }
  bool is_string() const { return value_.is_string(); }
  bool as_bool() const;
  int32_t as_id() const;  // from 0 to 2^31 - 1
  double as_number() const;
  const std::string& as_string() const;
  std::vector<VocabularyEntry> as_vocabulary() const;  // an object of ids by token
  const nlohmann::json& as_object() const;
  const nlohmann::json& as_list() const;

  bool bool_or(const char* key, bool otherwise) const {
    return has(key) ? (*this)[key].as_bool() : otherwise;
  }
  std::string string_or(const char* key, const char* otherwise) const {
    return has(key) ? (*this)[key].as_string() : otherwise;
  }

  // Throws `PLACE.type: "X" is not available; available is WHAT` (or "available are") for unsupported types.
  [[noreturn]] void unavailable(const std::string& type, const char* available) const;

  const std::string& place() const { return place_; }

 private:
  [[noreturn]] void expected(const char* what) const;
  bool is_top() const { return place_.ends_with(':'); }  // the whole file: "tokenizer.json:"
  std::string begin() const;                             // of a message

  const nlohmann::json& value_;
  std::string place_;
};

}  // namespace stretto::text
