// Proofs of a shared secret: what they cover, and that nobody else's bytes make one.
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "wire/handshake.h"
#include "wire/proof.h"

using namespace egret::wire;
using egret::base::Secret;

namespace {

using Frame = std::vector<std::byte>;

const Secret kSecret("0123456789abcdef");

HandshakeNonce counting_from(int first) {
  HandshakeNonce nonce{};
  for (std::byte& byte : nonce) byte = static_cast<std::byte>(first++);
  return nonce;
}

Frame hello_frame() {
  return encode(
      Hello{.features = kAuthenticate, .worker_id = 0x1112131415161718, .window = 32, .nonce = counting_from(1)});
}

Frame challenge_frame() {
  return encode(Challenge{counting_from(101)});
}

Frame grant_frame() {
  return encode(Grant{.features = kAuthenticate,
                      .session_id = 2,
                      .nonce = 3,
                      .epoch = 4,
                      .hash_seed = 5,
                      .item_size_max = 1 << 20,
                      .layout = {4, 8, 4096, 1024}});
}

Transcript transcript_of(const Frame& hello, const Frame& challenge) {
  Transcript transcript;
  transcript.add(hello);
  transcript.add(challenge);
  return transcript;
}

std::string hex(const Proof& proof) {
  std::string text;
  for (const std::byte byte : proof) {
    for (const int nibble : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15}) {
      text += "0123456789abcdef"[nibble];
    }
  }
  return text;
}

}  // namespace

// Made with another implementation: Python's hmac, over the bytes that README.md describes.
TEST_CASE("proofs are those of the format document") {
  const Transcript transcript = transcript_of(hello_frame(), challenge_frame());
  CHECK(hex(transcript.client_proof(kSecret)) == "a5360c1f17b165fb1a8c1955792219ac1dfd311e353e01da12e31e47f9fdf8d5");
  CHECK(hex(transcript.server_proof(kSecret, grant_frame())) ==
        "c3e0717f2c6a9017e2c038782103a736ac6daf80b5546e9079b905bf4516f446");
}

TEST_CASE("a proof changes with every byte of what it covers, and with the secret") {
  std::set<Proof> proofs;
  size_t made = 0;
  const auto remember = [&](const Proof& proof) {
    proofs.insert(proof);
    ++made;
  };
  const Frame hello = hello_frame();
  const Frame challenge = challenge_frame();
  remember(transcript_of(hello, challenge).client_proof(kSecret));
  for (size_t i = 0; i < hello.size() + challenge.size(); ++i) {
    Frame other_hello = hello;
    Frame other_challenge = challenge;
    (i < hello.size() ? other_hello[i] : other_challenge[i - hello.size()]) ^= std::byte{1};
    remember(transcript_of(other_hello, other_challenge).client_proof(kSecret));
    remember(transcript_of(other_hello, other_challenge).server_proof(kSecret, grant_frame()));
  }
  for (const char* secret : {"0123456789abcdee", "0123456789abcde", "0123456789abcdef\n", "0123456789ABCDEF"}) {
    remember(transcript_of(hello, challenge).client_proof(Secret(secret)));
  }
  CHECK(proofs.size() == made);
}

TEST_CASE("the backend's proof covers its whole grant, except for the proof itself") {
  const Transcript transcript = transcript_of(hello_frame(), challenge_frame());
  const Frame grant = grant_frame();
  const Proof proof = transcript.server_proof(kSecret, grant);
  for (size_t i = 0; i < grant.size(); ++i) {
    Frame other = grant;
    other[i] ^= std::byte{0x80};
    const bool is_proof_itself = i >= kGrantProofOffset && i < kGrantProofOffset + kProofBytes;
    CHECK(is_equal(transcript.server_proof(kSecret, other), proof) == is_proof_itself);
  }
  // A longer frame, as a later version may send it, or a cut one, which decode() refuses.
  for (const size_t size : {size_t{16}, kGrantProofOffset, kGrantProofOffset + 1, grant.size() + 8}) {
    Frame other = grant;
    other.resize(size);
    CHECK_FALSE(is_equal(transcript.server_proof(kSecret, other), proof));
  }
}

TEST_CASE("one side's proof is never good for the other, whatever it is made to cover") {
  const Transcript transcript = transcript_of(hello_frame(), challenge_frame());
  CHECK_FALSE(is_equal(transcript.client_proof(kSecret), transcript.server_proof(kSecret, {})));
}

TEST_CASE("proofs compare as bytes do") {
  const Proof proof = counting_from(1);
  CHECK(is_equal(proof, proof));
  for (size_t i = 0; i < proof.size(); ++i) {
    Proof other = proof;
    other[i] ^= std::byte{1};
    CHECK_FALSE(is_equal(proof, other));
  }
}

TEST_CASE("nonces do not repeat") {
  std::set<HandshakeNonce> nonces;
  for (int i = 0; i < 1000; ++i) nonces.insert(fresh_nonce());
  CHECK(nonces.size() == 1000);
}
