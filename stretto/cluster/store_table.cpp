#include "stretto/cluster/store_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::cluster {

std::optional<Reply> StoreTable::answer(const Request& request) {
  switch (request.operation) {
    case Operation::set:
      return put(request.keys[0], request.value).value_or(Reply{});
    case Operation::get:
      if (!has_all(request.keys)) return std::nullopt;
      return Reply{.value = values_.at(request.keys[0])};
    case Operation::add:
      return add(request.keys[0], request.number);
    case Operation::wait:
      if (!has_all(request.keys)) return std::nullopt;
      return Reply{};
    case Operation::compare_set:
      return compare_set(request);
    case Operation::remove:
      return remove(request.keys[0]);
    case Operation::add_at_end:  // handled by StoreConnection
      break;
  }
  return Reply{.status = Status::refused, .value = "unknown operation"};
}

bool StoreTable::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values_.contains(key); });
}

std::optional<Reply> StoreTable::put(const std::string& key, const std::string& value) {
  const auto found = values_.find(key);
  const bool is_new = found == values_.end();
  const size_t before = is_new ? 0 : key.size() + found->second.size();
  const size_t after = key.size() + value.size();
  if (is_new && values_.size() >= limits_.keys) {
    return Reply{.status = Status::refused,
                 .value = fmt::format("the store is full: it holds {} keys", values_.size())};
  }
  if (after > before && bytes_ - before + after > limits_.bytes) {
    return Reply{.status = Status::refused,
                 .value = fmt::format("the store is full: it holds {} bytes, and {} more do not fit into {}",
                                      bytes_, after - before, limits_.bytes)};
  }
  bytes_ = bytes_ - before + after;
  values_[key] = value;
  return std::nullopt;
}

Reply StoreTable::remove(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return {.number = 0};
  bytes_ -= key.size() + found->second.size();
  values_.erase(found);
  return {.number = 1};
}

// The sum is kept as decimal text, so that a get after an add reads what c10d's callers expect.
Reply StoreTable::add(const std::string& key, int64_t summand) {
  const auto found = values_.find(key);
  const auto old = found == values_.end() ? 0 : parse_int(found->second);
  int64_t sum = 0;
  if (!old || __builtin_add_overflow(int64_t{*old}, summand, &sum)) {
    const std::string shown = found->second.substr(0, 40);
    return {.status = Status::refused,
            .value = fmt::format("the value is \"{}\", to which {} cannot be added", shown, summand)};
  }
  return put(key, std::to_string(sum)).value_or(Reply{.number = sum});
}

// Like TCPStore: a missing key is set only if `expected` is empty; otherwise the reply is `expected`.
Reply StoreTable::compare_set(const Request& request) {
  const std::string& key = request.keys[0];
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (!request.expected.empty()) return {.value = request.expected};
    return put(key, request.value).value_or(Reply{.value = request.value});
  }
  if (found->second != request.expected) return {.value = found->second};
  return put(key, request.value).value_or(Reply{.value = request.value});
}

}  // namespace stretto::cluster
