#pragma once

#include <functional>
#include <mutex>
#include <optional>

namespace stretto {

// A value that is computed when it is first needed. A copy computes its own, since its owner may differ by
// then. Thread-safe.
template <class T>
class Lazy {
 public:
  Lazy() = default;
  Lazy(const Lazy&) {}
  Lazy& operator=(const Lazy& other) {
    if (this == &other) return *this;
    const std::lock_guard lock(mutex_);
    value_.reset();
    return *this;
  }
  ~Lazy() = default;

  // Other threads wait for `make`. If it throws, the next call computes the value.
  const T& get(const std::function<T()>& make) {
    const std::lock_guard lock(mutex_);
    if (!value_) value_ = make();
    return *value_;
  }

 private:
  std::mutex mutex_;
  std::optional<T> value_;
};

}  // namespace stretto
