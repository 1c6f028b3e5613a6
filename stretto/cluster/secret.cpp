#include "stretto/cluster/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::cluster {

std::string random_bytes(size_t bytes) {
  std::string result(bytes, '\0');
  if (::RAND_bytes(reinterpret_cast<unsigned char*>(result.data()), static_cast<int>(bytes)) != 1) {
    throw IoError("the operating system's random generator failed");
  }
  return result;
}

std::string make_secret() { return to_hex(random_bytes(32)); }

std::string prove(std::string_view secret, std::string_view message) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest,
             &size) == nullptr) {
    throw IoError("OpenSSL cannot compute an HMAC-SHA256");
  }
  return {reinterpret_cast<const char*>(digest), size};
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace stretto::cluster
