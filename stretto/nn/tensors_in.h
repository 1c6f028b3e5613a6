#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// tensors_in<T>: whether T is a tensor, or consists of tensors: optional, vector, array, pair, tuple, map by
// name.
template <class T>
inline constexpr bool tensors_in = std::is_same_v<T, Tensor>;
template <class T>
inline constexpr bool tensors_in<std::optional<T>> = tensors_in<T>;
template <class T, class A>
inline constexpr bool tensors_in<std::vector<T, A>> = tensors_in<T>;
template <class T, size_t n>
inline constexpr bool tensors_in<std::array<T, n>> = tensors_in<T>;
template <class T, class U>
inline constexpr bool tensors_in<std::pair<T, U>> = tensors_in<T> || tensors_in<U>;
template <class... T>
inline constexpr bool tensors_in<std::tuple<T...>> = (tensors_in<T> || ...);
template <class K, class T, class... More>
inline constexpr bool tensors_in<std::map<K, T, More...>> = tensors_in<T>;
template <class K, class T, class... More>
inline constexpr bool tensors_in<std::unordered_map<K, T, More...>> = tensors_in<T>;

namespace detail {
template <class T>
inline constexpr bool is_map = false;
template <class K, class T, class... More>
inline constexpr bool is_map<std::map<K, T, More...>> = true;
template <class K, class T, class... More>
inline constexpr bool is_map<std::unordered_map<K, T, More...>> = true;
}  // namespace detail

// Calls f(Tensor&) on each tensor of `value`; does nothing for a type without tensors.
template <class T, class F>
void for_each_tensor(T& value, const F& f) {
  if constexpr (!tensors_in<T>) {
    return;  // a part of a pair or tuple
  } else if constexpr (std::is_same_v<T, Tensor>) {
    f(value);
  } else if constexpr (requires { value.has_value(); }) {
    if (value) for_each_tensor(*value, f);
  } else if constexpr (detail::is_map<T>) {
    for (auto& item : value) for_each_tensor(item.second, f);
  } else if constexpr (requires { value.begin(); }) {
    for (auto& element : value) for_each_tensor(element, f);
  } else {
    std::apply([&](auto&... parts) { (for_each_tensor(parts, f), ...); }, value);
  }
}

}  // namespace stretto::nn
