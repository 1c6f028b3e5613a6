#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace stretto::settings {

// Sets an environment variable (nullptr: unsets it) until the end of the scope, for tests.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    assign(value);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { assign(before_ ? before_->c_str() : nullptr); }

 private:
  void assign(const char* value) {
    if (value != nullptr) {
      ::setenv(name_.c_str(), value, 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace stretto::settings
