#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto {

// A size in a config.json, by its key.
struct NamedSize {
  const char* key;
  int64_t value;
};

// A weight outside the layers: an embedding table, a linear map.
struct TableSize {
  NamedSize rows, width;
};

// Layers of equal size.
struct StackSize {
  NamedSize layers, heads, inner;
  int64_t square_maps = 4;  // linear maps of a layer from the model's width to itself
};

// Checks the configuration of a transformer before tensors are allocated. Throws ConfigError with `source`
// and the keys if the heads of a stack do not divide `width`, the model's, or if there are more than
// max_parameters.
void check_transformer_sizes(const std::string& source, const NamedSize& width,
                             const std::vector<TableSize>& tables, const std::vector<StackSize>& stacks);

}  // namespace stretto
