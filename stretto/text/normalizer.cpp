#include "stretto/text/normalizer.h"

#include "stretto/text/utf8.h"

namespace stretto::text {

void NoNormalizer::normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const {
  size_t at = out.bytes.size();
  out.bytes.append(text);
  out.characters.resize(out.bytes.size());
  uint32_t* characters = out.characters.data() + at;
  uint32_t next = first_character;
  for (size_t i = 0; i < text.size(); ++i) {
    next += is_lead_byte(text[i]) ? 1 : 0;
    characters[i] = next - 1;
  }
}

}  // namespace stretto::text
