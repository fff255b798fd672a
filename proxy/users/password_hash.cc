#include "proxy/users/password_hash.h"

#include <cstring>
#include <memory>

#include <crypt.h>
#include <openssl/crypto.h>

namespace egret::proxy {

std::string hash_fault(const std::string& hash) {
  // DES's hashes have no '$': two letters of any word would pass for one.
  const int verdict = hash.starts_with('$') ? ::crypt_checksalt(hash.c_str()) : CRYPT_SALT_INVALID;
  if (verdict == CRYPT_SALT_OK) return {};
  if (verdict == CRYPT_SALT_METHOD_LEGACY || verdict == CRYPT_SALT_TOO_CHEAP) {
    return "the hash is of a kind that is guessed too easily; make one by mkpasswd -m yescrypt, or openssl passwd -6";
  }
  return "expected a hash as mkpasswd -m yescrypt or openssl passwd -6 makes it";
}

bool is_password_of(std::string_view password, const std::string& hash) {
  std::string phrase(password);
  const auto data = std::make_unique<crypt_data>();  // 32 KiB
  const char* const made = ::crypt_r(phrase.c_str(), hash.c_str(), data.get());
  // A NUL in the password would end it early.
  const bool is_whole = std::strlen(phrase.c_str()) == phrase.size();
  const bool is_right = is_whole && made != nullptr && made[0] != '*' && std::strlen(made) == hash.size() &&
                        CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
  OPENSSL_cleanse(phrase.data(), phrase.size());
  OPENSSL_cleanse(data.get(), sizeof *data);
  return is_right;
}

}  // namespace egret::proxy
