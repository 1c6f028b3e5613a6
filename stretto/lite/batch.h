#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/tensor/batch.h"

namespace torch::data {
template <class Data, class Target>
struct Example;
}

// Access to the tensors of a batch of any type. A vector is a list of samples; the first dimension of a
// tensor counts samples; a pair, tuple, array, map, optional, torch::data::Example or stretto::Batch is
// visited part by part. A program declares the parts of its own struct:
//
//   struct MyBatch { torch::Tensor ids, mask, labels; };
//   inline auto lite_fields(MyBatch& batch) { return std::tie(batch.ids, batch.mask, batch.labels); }
namespace stretto::lite {

template <class T>
concept HasFields = requires(T& value) {
  lite_fields(value);
};

template <class T>
concept HasNoTensors = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string>;

// Whether T is a std::vector.
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

// Calls visit(part) for each direct part of a batch.
template <class T, class Visit>
void for_each_part(T& value, const Visit& visit);

namespace detail {
template <class First, class Second, class Visit>
void parts(std::pair<First, Second>& value, const Visit& visit) {
  visit(value.first);
  visit(value.second);
}
template <class... Ts, class Visit>
void parts(std::tuple<Ts...>& value, const Visit& visit) {
  std::apply([&](auto&... part) { (visit(part), ...); }, value);
}
template <class T, size_t N, class Visit>
void parts(std::array<T, N>& value, const Visit& visit) {
  for (T& part : value) visit(part);
}
template <class T, class Visit>
void parts(std::optional<T>& value, const Visit& visit) {
  if (value) visit(*value);
}
template <class Key, class T, class Visit>
void parts(std::map<Key, T>& value, const Visit& visit) {
  for (auto& [key, part] : value) visit(part);
}
template <class Key, class T, class Visit>
void parts(std::unordered_map<Key, T>& value, const Visit& visit) {
  for (auto& [key, part] : value) visit(part);
}
template <class Data, class Target, class Visit>
void parts(torch::data::Example<Data, Target>& value, const Visit& visit) {
  visit(value.data);
  if constexpr (!std::is_void_v<Target>) visit(value.target);
}
template <class Visit>
void parts(Batch& value, const Visit& visit) {
  for (auto& [name, tensor] : value.tensors) visit(tensor);
}

template <class T>
concept HasKnownParts = requires(T& value) {
  parts(value, [](auto&) {});
};
}  // namespace detail

template <class T, class Visit>
void for_each_part(T& value, const Visit& visit) {
  if constexpr (HasFields<T>) {
    std::apply([&](auto&... part) { (visit(part), ...); }, lite_fields(value));
  } else {
    static_assert(
        detail::HasKnownParts<T>,
        "Lite does not support this type of batch: declare lite_fields(YourBatch&) in its namespace, returning std::tie of its parts (stretto/lite/batch.h)");
    detail::parts(value, visit);
  }
}

// Calls visit(tensor) for every tensor of a batch.
template <class T, class Visit>
void for_each_tensor(T& value, const Visit& visit) {
  if constexpr (std::same_as<T, Tensor>) {
    if (value.defined()) visit(value);
  } else if constexpr (IsVector<T>::value) {
    for (auto& part : value) for_each_tensor(part, visit);
  } else if constexpr (!HasNoTensors<T>) {
    for_each_part(value, [&](auto& part) { for_each_tensor(part, visit); });
  }
}

// The number of samples in a batch; nullopt if no part of it counts them. Throws DataError if its parts have
// different numbers.
template <class T>
std::optional<int64_t> count_samples(T& value) {
  if constexpr (std::same_as<T, Tensor>) {
    if (value.defined() && value.dim() > 0) return value.size(0);
  } else if constexpr (IsVector<T>::value) {
    return static_cast<int64_t>(value.size());
  } else if constexpr (!HasNoTensors<T>) {
    std::optional<int64_t> count;
    for_each_part(value, [&](auto& part) {
      const auto part_count = count_samples(part);
      if (part_count && count && *part_count != *count) {
        throw DataError(
            "a batch cannot be divided among the ranks: its parts hold {} and {} samples. The first dimension of each tensor must count samples",
            *count, *part_count);
      }
      if (part_count) count = part_count;
    });
    return count;
  }
  return std::nullopt;
}

// Reduces a batch to its samples [begin, end). Tensors become views. Throws DataError for a packed batch.
template <class T>
void keep_samples(T& value, int64_t begin, int64_t end) {
  if constexpr (std::same_as<T, Tensor>) {
    if (value.defined() && value.dim() > 0) value = value.slice(0, begin, end);
  } else if constexpr (IsVector<T>::value) {
    value.erase(value.begin() + end, value.end());
    value.erase(value.begin(), value.begin() + begin);
  } else if constexpr (std::same_as<T, Batch>) {
    if (value.has("cu_seqlens")) {
      throw DataError(
          "a packed batch cannot be divided: pass the dataset to Lite::setup instead of a loader");
    }
    for_each_part(value, [&](auto& part) { keep_samples(part, begin, end); });
    if (!value.sample_ids.empty()) keep_samples(value.sample_ids, begin, end);
    value.count = end - begin;
  } else if constexpr (!HasNoTensors<T>) {
    for_each_part(value, [&](auto& part) { keep_samples(part, begin, end); });
  }
}

}  // namespace stretto::lite
