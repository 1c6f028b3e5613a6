#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stretto::weights {

// A floating-point type of safetensors files.
struct FloatType {
  std::string_view name;        // in safetensors: "BF16"
  std::string_view torch_name;  // "bfloat16"
  int rank;  // a type includes the values of types of lower rank; BF16 and F16 do not include each other
  double (*read)(const char* element);
  // Appends the value, rounded to the nearest (ties to even).
  void (*write)(double value, std::string& bytes);
};

// The type with this name in safetensors; null for other names.
const FloatType* find_float_type(std::string_view name);
// The type with this name in torch. Throws ConfigError, which lists the names.
const FloatType& float_type(const std::string& torch_name);

// Converts the elements of a tensor, which come in parts of any size, to another floating-point type.
class Cast {
 public:
  // `tensor`: its name, for messages. `write` receives the converted bytes.
  Cast(std::string tensor, const FloatType& from, const FloatType& to,
       std::function<void(std::string_view)> write);

  // Throws DataError for a finite value that is too large for the type.
  void add(std::string_view bytes);

 private:
  const std::string tensor_;
  const FloatType &from_, &to_;
  const std::function<void(std::string_view)> write_;
  std::string rest_;  // the beginning of an element
};

}  // namespace stretto::weights
