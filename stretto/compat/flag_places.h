#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stretto::compat {

// The flags of a script's command line by the lines of the recipe that they became: errors name the flags.
class FlagPlaces {
 public:
  bool empty() const { return flags_.empty(); }
  void add(int64_t line, const std::string& flag) { flags_[line] = flag; }

  // `text` with "FILE:LINE:COLUMN" of such a line replaced by its flag: "--seed abc".
  std::string in(std::string text, const std::string& file) const;

 private:
  std::map<int64_t, std::string> flags_;
};

}  // namespace stretto::compat
