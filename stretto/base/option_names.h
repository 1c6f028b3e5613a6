#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace stretto {

// What messages of a library call its options. A C++ user knows an option by the name of its member, which is
// the default; a program gives the names that its own users know: keys of a recipe, flags of a command.
//   TaggedOptions options = {.names = {{"encoding", "data.encoding"}}};
class OptionNames {
 public:
  OptionNames() = default;
  OptionNames(std::initializer_list<std::pair<const std::string, std::string>> given) : given_(given) {}

  std::string operator()(const std::string& member) const {
    const auto found = given_.find(member);
    return found == given_.end() ? member : found->second;
  }
  void set(const std::string& member, const std::string& name) { given_[member] = name; }

 private:
  std::map<std::string, std::string> given_;
};

}  // namespace stretto
