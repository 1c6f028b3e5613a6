#include "stretto/launch/output/lines.h"

namespace stretto::launch {
namespace {

constexpr size_t longest_line = size_t{64} << 10;  // longer ones are split, to bound memory
constexpr std::string_view clear_line = "\033[K";  // follows the carriage return of live progress

}  // namespace

void Lines::feed(std::string_view bytes, const Take& take) {
  for (const char byte : bytes) {
    if (byte == '\n') {
      emit(take);
    } else if (byte == '\r') {
      returned_ = true;
    } else {
      if (returned_) line_.clear();
      returned_ = false;
      line_.push_back(byte);
      if (line_.size() >= longest_line) emit(take);
    }
  }
}

void Lines::finish(const Take& take) {
  if (!line_.empty()) emit(take);
}

void Lines::emit(const Take& take) {
  std::string_view line = line_;
  if (line.starts_with(clear_line)) line.remove_prefix(clear_line.size());
  take(line);
  line_.clear();
  returned_ = false;
}

}  // namespace stretto::launch
