#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stretto {

// A user's mistake. `make` does what it leads to, which throws a stretto::Error. No message may hold the words of a
// library (yaml-cpp, nlohmann-json), which differ by version.
struct Mistake {
  std::string name;  // unique, the subject first: "recipe: an unknown key"
  std::function<void()> make;
};

std::vector<Mistake> mistakes();

}  // namespace stretto
