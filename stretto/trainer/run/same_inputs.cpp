#include "stretto/trainer/run/same_inputs.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/process.h"

namespace stretto::trainer {
namespace {

std::string encode(const std::vector<Input>& inputs) {
  auto list = nlohmann::json::array();
  for (const Input& input : inputs) list.push_back({input.name, input.value, input.place});
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<Input> decode(const std::string& text) {
  std::vector<Input> inputs;
  for (const auto& input : nlohmann::json::parse(text)) inputs.push_back({input[0], input[1], input[2]});
  return inputs;
}

// Excludes places: hosts may have the same file at different paths.
std::string digest(const std::vector<Input>& inputs) {
  std::string text;
  for (const Input& input : inputs) text += input.name + '\0' + input.value + '\0';
  return hash128_hex(text);
}

// "ranks 0 and 1 on node-7, rank 2 on node-8"; without hosts where all ranks are on one.
std::string ranks_text(const std::vector<size_t>& ranks, const std::vector<std::string>& hosts) {
  const bool one_host = std::ranges::all_of(hosts, [&](const auto& host) { return host == hosts[0]; });
  if (one_host) return numbered("rank", ranks);
  std::map<std::string, std::vector<size_t>> by_host;
  for (const size_t rank : ranks) by_host[hosts[rank]].push_back(rank);
  std::string text;
  for (const auto& [host, own] : by_host)
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", numbered("rank", own), host);
  return text;
}

}  // namespace

void require_same_inputs(Group& group, const std::vector<Input>& inputs) {
  const auto digests = group.all_gather_bytes(digest(inputs));
  if (std::ranges::all_of(digests, [&](const auto& other) { return other == digests[0]; })) return;
  std::vector<std::vector<Input>> all;
  for (const std::string& text : group.all_gather_bytes(encode(inputs))) all.push_back(decode(text));
  const auto hosts = group.all_gather_bytes(host_name());
  throw ConfigError(
      "the inputs of the ranks differ:{}\nUse the same recipe and the same files on every rank; a ${{VARIABLE}} in a recipe must have the same value on all ranks",
      differences(all, [&](const std::vector<size_t>& ranks) { return ranks_text(ranks, hosts); }));
}

}  // namespace stretto::trainer
