#include "wire/proof.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"
#include "base/random.h"
#include "wire/handshake.h"

namespace egret::wire {

namespace {

// Labels of equal length that differ, so that one side's proof is never valid as the other's.
constexpr std::string_view kClientLabel = "egret handshake v1: proxy proof\n";
constexpr std::string_view kServerLabel = "egret handshake v1: store proof\n";
static_assert(kClientLabel.size() == 32 && kServerLabel.size() == 32);

Proof hmac(const base::Secret& secret, const std::vector<std::byte>& message) {
  EGRET_CHECK(secret.is_set());
  Proof proof;
  unsigned length = 0;
  const auto* made = ::HMAC(::EVP_sha256(), secret.bytes().data(), static_cast<int>(secret.bytes().size()),
                            reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                            reinterpret_cast<unsigned char*>(proof.data()), &length);
  EGRET_CHECK(made != nullptr && length == proof.size());
  return proof;
}

std::vector<std::byte> labelled(std::string_view label, const std::vector<std::byte>& frames) {
  const auto* bytes = reinterpret_cast<const std::byte*>(label.data());
  std::vector<std::byte> message(bytes, bytes + label.size());
  message.insert(message.end(), frames.begin(), frames.end());
  return message;
}

}  // namespace

HandshakeNonce fresh_nonce() {
  HandshakeNonce nonce;
  base::fill_random(nonce);
  return nonce;
}

bool is_equal(const Proof& a, const Proof& b) {
  return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Proof Transcript::client_proof(const base::Secret& secret) const {
  return hmac(secret, labelled(kClientLabel, frames_));
}

Proof Transcript::server_proof(const base::Secret& secret, std::span<const std::byte> grant) const {
  std::vector<std::byte> message = labelled(kServerLabel, frames_);
  const size_t grant_at = message.size();
  message.insert(message.end(), grant.begin(), grant.end());
  const size_t proof_at = std::min(grant_at + kGrantProofOffset, message.size());
  const size_t proof_end = std::min(proof_at + kProofBytes, message.size());
  std::fill(message.begin() + static_cast<ptrdiff_t>(proof_at), message.begin() + static_cast<ptrdiff_t>(proof_end),
            std::byte{0});
  return hmac(secret, message);
}

}  // namespace egret::wire
