// libcrypto: what proofs of a secret need (wire/proof.cc).
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "client/link/late.h"

EGRET_LATE(int, CRYPTO_memcmp, (const void* a, const void* b, size_t c), (a, b, c));
EGRET_LATE(const EVP_MD*, EVP_sha256, (), ());
EGRET_LATE(unsigned char*, HMAC,
           (const EVP_MD* a, const void* b, int c, const unsigned char* d, size_t e, unsigned char* f, unsigned int* g),
           (a, b, c, d, e, f, g));

namespace egret::client {

std::span<const LateSymbol> crypto_symbols() {
  static const LateSymbol kSymbols[] = {EGRET_LATE_SYMBOL(CRYPTO_memcmp), EGRET_LATE_SYMBOL(EVP_sha256),
                                        EGRET_LATE_SYMBOL(HMAC)};
  return kSymbols;
}

}  // namespace egret::client
