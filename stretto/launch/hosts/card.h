#pragma once

#include <string>
#include <tuple>
#include <vector>

namespace stretto::launch {

// The entry of a host in the job's store, written when it joins.
struct HostCard {
  std::string host;
  int process = 0;  // of its launcher
  int nodes = 0;
  int ranks = 0;
  std::vector<std::tuple<std::string, std::string, std::string>> inputs = {};  // base/inputs.h
};

std::string encode(const HostCard& card);

// Throws DistributedError if `text` is not a card.
HostCard decode_card(const std::string& text);

}  // namespace stretto::launch
