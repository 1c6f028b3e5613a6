#include "stretto/token_corpus/block_range.h"

#include <fmt/format.h>

#include "stretto/base/hash.h"

namespace stretto::token_corpus {

std::string BlockRange::fingerprint() const {
  return hash128_hex(fmt::format("{} {} {}", whole_->fingerprint(), first_, count_));
}

}  // namespace stretto::token_corpus
