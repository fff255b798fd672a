#include "proxy/users/keyed_hash.h"

#include <cstdint>
#include <string>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/random.h"

namespace egret::proxy {

KeyedHash keyed_hash(std::span<const std::byte> key, std::initializer_list<std::string_view> texts) {
  std::string message;
  for (const std::string_view text : texts) {
    const uint64_t size = text.size();  // so that "ab" and "c" is not "a" and "bc"
    message.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
  }
  KeyedHash hash;
  unsigned size = hash.size();
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), hash.data(), &size);
  if (made == nullptr || size != hash.size()) base::fill_random(std::as_writable_bytes(std::span(hash)));  // no memory
  OPENSSL_cleanse(message.data(), message.size());
  return hash;
}

bool is_same(const KeyedHash& a, const KeyedHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace egret::proxy
