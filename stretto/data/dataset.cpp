#include "stretto/data/dataset.h"

#include "stretto/base/hash.h"

namespace stretto::data {

std::string Dataset::fingerprint() const {
  return hash128_hex({reinterpret_cast<const char*>(lengths().data()), lengths().size_bytes()});
}

}  // namespace stretto::data
