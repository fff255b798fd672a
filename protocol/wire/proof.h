// How the two sides of a handshake prove to each other that they hold the same secret, without sending it. README.md,
// "Authentication", is the format. Only this file uses the cryptography library.
//
//   client                                            backend
//     hello (its nonce)         ──────────────▶         transcript: hello
//                               ◀──────────────       challenge (its nonce)
//   transcript: hello, challenge                        transcript: hello, challenge
//     proof = client_proof()    ──────────────▶         is_equal(its own client_proof())?
//                               ◀──────────────       grant with server_proof(grant)
//   is_equal(its own server_proof(grant))?
//
// Each proof is an HMAC-SHA256 over a label of its side and the frames as they travelled, which contain both nonces,
// the version, the worker id and everything requested. Nonces are new in each handshake, so a proof is valid only once.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/options/secret.h"

namespace egret::wire {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
using HandshakeNonce = std::array<std::byte, kNonceBytes>;
using Proof = std::array<std::byte, kProofBytes>;

// A nonce from the kernel's random number generator.
HandshakeNonce fresh_nonce();

// Compares in constant time.
bool is_equal(const Proof& a, const Proof& b);

// One side's record of a handshake. A value; any thread, one at a time.
class Transcript {
 public:
  void clear() { frames_.clear(); }
  // Adds a whole frame as it was sent or received: first the hello, then the challenge.
  void add(std::span<const std::byte> frame) { frames_.insert(frames_.end(), frame.begin(), frame.end()); }

  Proof client_proof(const base::Secret& secret) const;
  // `grant`: the whole frame; the bytes of its proof count as zeroes.
  Proof server_proof(const base::Secret& secret, std::span<const std::byte> grant) const;

 private:
  std::vector<std::byte> frames_;
};

}  // namespace egret::wire
