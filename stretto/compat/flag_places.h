#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stretto::compat {

// Maps the lines of a translated recipe to the flags of the script's command line, so that errors name the
// flags.
class FlagPlaces {
 public:
  bool empty() const { return flags_.empty(); }
  void add(int64_t line, const std::string& flag) { flags_[line] = flag; }

  // Replaces "FILE:LINE:COLUMN" of a mapped line in `text` by its flag: "--seed abc".
  std::string in(std::string text, const std::string& file) const;

 private:
  std::map<int64_t, std::string> flags_;
};

}  // namespace stretto::compat
