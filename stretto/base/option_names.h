#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace stretto {

// The names of options in messages of a library. The default is the name of the member, which C++ users know;
// a program sets the names that its own users know: keys of a recipe, flags of a command.
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
