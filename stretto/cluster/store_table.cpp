#include "stretto/cluster/store_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::cluster {

std::optional<Reply> StoreTable::answer(const Request& request) {
  switch (request.operation) {
    case Operation::set:
      values_[request.keys[0]] = request.value;
      return Reply{};
    case Operation::get:
      if (!has_all(request.keys)) return std::nullopt;
      return Reply{.value = values_.at(request.keys[0])};
    case Operation::add:
      return add(request.keys[0], request.number);
    case Operation::check:
      return Reply{.number = has_all(request.keys)};
    case Operation::wait:
      if (!has_all(request.keys)) return std::nullopt;
      return Reply{};
    case Operation::compare_set:
      return compare_set(request);
    case Operation::remove:
      return Reply{.number = static_cast<int64_t>(values_.erase(request.keys[0]))};
    case Operation::count_keys:
      return Reply{.number = static_cast<int64_t>(values_.size())};
  }
  return Reply{.status = Status::refused, .value = "unknown operation"};
}

bool StoreTable::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values_.contains(key); });
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
  values_[key] = std::to_string(sum);
  return {.number = sum};
}

// As TCPStore: a missing key is set only when nothing is expected, and else the caller gets back what it
// expected.
Reply StoreTable::compare_set(const Request& request) {
  const std::string& key = request.keys[0];
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (!request.expected.empty()) return {.value = request.expected};
    values_[key] = request.value;
    return {.value = request.value};
  }
  if (found->second == request.expected) found->second = request.value;
  return {.value = found->second};
}

}  // namespace stretto::cluster
