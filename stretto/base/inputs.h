#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stretto {

// An input that every member of a job (a rank, a host) reads separately and that must be the same for all.
struct Input {
  std::string name;        // "optimizer.lr", "data.train"
  std::string value;       // the value of a setting, or a hash of contents
  std::string place = {};  // where this member read it: "sst2.yaml:14:7", a path
};

// Returns the differences between the inputs of all members, one line each, indented and preceded by a line
// break: "optimizer.lr: 0.001 on ranks 0 and 2 (a.yaml:3:7), 0.002 on rank 1 (b.yaml:3:7)". At most eight are
// named; "" if there is none. `who` names members by their numbers. Places may differ.
std::string differences(const std::vector<std::vector<Input>>& members,
                        const std::function<std::string(const std::vector<size_t>&)>& who);

// "rank 1", "ranks 0, 1 and 3": `noun` and its numbers.
std::string numbered(const std::string& noun, const std::vector<size_t>& numbers);

}  // namespace stretto
