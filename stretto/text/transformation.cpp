#include "stretto/text/transformation.h"

#include <algorithm>

#include "stretto/text/utf8.h"

namespace stretto::text {

void Transformation::write(char32_t c, int change) {
  uint32_t character = std::max(next_, first_ + 1) - 1;
  if (change <= 0) {
    character = next_;
    next_ += 1 + static_cast<uint32_t>(-change);
  }
  append_utf8(out_.bytes, c);
  out_.characters.resize(out_.bytes.size(), character);
}

void Transformation::copy(std::string_view part) {
  NoNormalizer().normalize(part, next_, out_);
  next_ += static_cast<uint32_t>(count_code_points(part));
}

}  // namespace stretto::text
