#include "tests/support/file_fault.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>

// A library for LD_PRELOAD. It links no library of stretto, since the programs contain their own.
namespace stretto {

using file_faults::Effect;
using file_faults::Fault;

std::optional<Fault> parse_file_fault(std::string_view text, std::string_view rank) {
  static const std::map<std::string, std::pair<Effect, int>> effects = {
      {"enospc", {Effect::error, ENOSPC}}, {"edquot", {Effect::error, EDQUOT}},
      {"eio", {Effect::error, EIO}},       {"erofs", {Effect::error, EROFS}},
      {"eacces", {Effect::error, EACCES}}, {"eintr", {Effect::error, EINTR}},
      {"short", {Effect::short_write, 0}}, {"torn", {Effect::torn_write, 0}},
      {"kill", {Effect::kill_before, 0}},  {"kill-after", {Effect::kill_after, 0}}};
  static const std::regex form(R"(([a-z-]+)@([1-9][0-9]{0,17})(\+?)(?::rank=([0-9]+))?(?::path=([^:]*))?)");
  std::cmatch parts;
  const bool matches = std::regex_match(text.data(), text.data() + text.size(), parts, form);
  const auto effect = matches ? effects.find(parts.str(1)) : effects.end();
  if (effect == effects.end()) {
    throw std::invalid_argument(
        "STRETTO_FILE_FAULT=" + std::string(text) +
        ": expected EFFECT@CALL[+][:rank=R][:path=TEXT], as in enospc@17 or kill@12:rank=1; see file_fault.h");
  }
  if (parts[4].matched && parts.str(4) != rank) return std::nullopt;
  return Fault{.call = std::stoll(parts.str(2)),
               .effect = effect->second.first,
               .error = effect->second.second,
               .sticky = parts[3].length() > 0,
               .path = parts.str(5)};
}

}  // namespace stretto

extern "C" const stretto::file_faults::Fault* stretto_file_fault();
extern "C" const stretto::file_faults::Fault* stretto_file_fault() {
  const char* text = std::getenv("STRETTO_FILE_FAULT");
  const char* rank = std::getenv("RANK");
  if (text == nullptr) return nullptr;
  try {
    static const auto fault = stretto::parse_file_fault(text, rank == nullptr ? "" : rank);
    return fault ? &*fault : nullptr;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(2);
  }
}
