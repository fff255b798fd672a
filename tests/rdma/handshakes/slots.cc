#include "slots.h"

#include <cstring>

#include <xxhash.h>

#include "scenario.h"

namespace egret::handshakes {
namespace {

uint64_t checksum_of(const Message& message, uint64_t nonce) {
  const uint64_t body = XXH3_64bits_withSeed(message.body, message.header.length, nonce ^ message.header.seq);
  return body ^ (message.header.length * 0x9e3779b97f4a7c15);
}

// Mostly short bodies, now and then one that fills several packets.
void fill(Message& message, uint64_t source) {
  Random random(source);
  message.header.length = random.one_in(4) ? random.below(kMaxBody + 1) : random.below(201);
  for (size_t i = 0; i < message.header.length; i += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    const size_t left = message.header.length - i;
    std::memcpy(message.body + i, &word, left < sizeof(word) ? left : sizeof(word));
  }
}

}  // namespace

Seen look(const std::byte* slot, uint64_t expected_seq, uint64_t nonce, bool check, Message& copy) {
  if (observe_word(slot) != expected_seq) return Seen::kNotYet;
  std::memcpy(&copy.header, slot, sizeof(Header));
  if (copy.header.seq != expected_seq) return Seen::kTorn;
  if (copy.header.length > kMaxBody) {
    if (check) return Seen::kTorn;
    copy.header.length = kMaxBody;
  }
  std::memcpy(copy.body, slot + sizeof(Header), copy.header.length);
  if (check && copy.header.checksum != checksum_of(copy, nonce)) return Seen::kTorn;
  return Seen::kWhole;
}

void seal(Message& message, uint64_t nonce) {
  message.header.checksum = checksum_of(message, nonce);
}

void make_request(uint64_t nonce, uint32_t lane, uint64_t seq, Message& request) {
  request.header = Header{.seq = seq, .checksum = 0, .asleep = 0, .length = 0, .reserved = 0};
  fill(request, nonce ^ (seq * 0x100000001b3) ^ (uint64_t{lane} << 56));
  seal(request, nonce);
}

void make_response(uint64_t nonce, uint32_t lane, const Message& request, Message& response) {
  response.header = Header{.seq = request.header.seq, .checksum = 0, .asleep = 0, .length = 0, .reserved = 0};
  // The answer depends on every byte asked: a request executed torn, twice or for another lane shows in it.
  fill(response, XXH3_64bits_withSeed(request.body, request.header.length, nonce + request.header.seq + lane));
  seal(response, nonce);
}

}  // namespace egret::handshakes
