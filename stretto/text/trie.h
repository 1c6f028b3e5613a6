#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::text {

// A map from byte strings to numbers >= 0 that finds all keys that are prefixes of a text. The children of a
// node are adjacent, in the order of their bytes.
class Trie {
 public:
  // The last of equal keys is used; empty keys are never found. The keys' bytes are copied.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> keys);

  // Calls on_key(size in bytes, value) for each key that is a prefix of `text`, shortest first.
  template <class OnKey>
  void find_prefixes(std::string_view text, OnKey&& on_key) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = i == 0 ? first_[static_cast<unsigned char>(text[0])] : child(node, text[i]);
      if (node == 0) return;
      if (nodes_[node].value >= 0) on_key(i + 1, nodes_[node].value);
    }
  }

 private:
  struct Node {
    uint32_t first_child = 0;
    uint32_t child_count = 0;
    int32_t value = -1;
  };

  // Returns 0 if there is none: the root is no child.
  uint32_t child(uint32_t node, char byte) const {
    const auto [first, count, value] = nodes_[node];
    const auto wanted = static_cast<unsigned char>(byte);
    uint32_t low = 0;
    for (uint32_t size = count; size > 0;) {
      const uint32_t half = size / 2;
      const unsigned char label = labels_[first + low + half];
      if (label == wanted) return first + low + half;
      if (label < wanted) {
        low += half + 1;
        size -= half + 1;
      } else {
        size = half;
      }
    }
    return 0;
  }

  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;  // the byte that leads to each node
  std::vector<uint32_t> first_;        // the root's children by byte
};

}  // namespace stretto::text
