#include "stretto/text/trie.h"

#include <algorithm>

namespace stretto::text {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> keys) : first_(256) {
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // The keys below each node, and the depth of the node in bytes.
  struct Range {
    size_t begin;
    size_t end;
    size_t depth;
  };
  std::vector<Range> ranges = {{0, keys.size(), 0}};
  nodes_.emplace_back();
  labels_.push_back(0);
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    for (; begin < end && keys[begin].first.size() == depth; ++begin) nodes_[node].value = keys[begin].second;
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char label = keys[begin].first[depth];
      size_t last = begin + 1;
      while (last < end && keys[last].first[depth] == label) ++last;
      nodes_.emplace_back();
      labels_.push_back(static_cast<unsigned char>(label));
      ranges.push_back({begin, last, depth + 1});
      begin = last;
    }
    nodes_[node].child_count = static_cast<uint32_t>(nodes_.size()) - nodes_[node].first_child;
  }
  for (uint32_t i = 0; i < nodes_[0].child_count; ++i) first_[labels_[1 + i]] = 1 + i;
}

}  // namespace stretto::text
