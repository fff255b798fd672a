// The frames that open a session.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "wire/handshake.h"

using namespace egret::wire;

namespace {

using Frame = std::vector<std::byte>;

const Hello kHello{.features = 0x0102030405060000, .worker_id = 0x1112131415161718, .window = 0x21222324};
const Grant kGrant{.features = 2,
                   .session_id = 2,
                   .nonce = 0x3132333435363738,
                   .epoch = 4,
                   .hash_seed = 5,
                   .item_size_max = 1 << 20,
                   .layout = {4, 8, 4096, 1024}};

// 1, 2, 3 ... as a nonce or a proof.
std::array<std::byte, 32> counting_from(int first) {
  std::array<std::byte, 32> bytes{};
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(first++);
  return bytes;
}

Hello returning_hello() {
  Hello hello = kHello;
  hello.features = kComeBack;
  hello.asked_back = 3;
  return hello;
}

Hello relayed_hello() {
  Hello hello = returning_hello();
  hello.features |= kRelayed;
  hello.member = 0x0807060504030201;
  return hello;
}

Hello authenticating_hello() {
  Hello hello = kHello;
  hello.features = kAuthenticate;
  hello.nonce = counting_from(1);
  return hello;
}

Grant authenticating_grant() {
  Grant grant = kGrant;
  grant.features = kAuthenticate;
  grant.proof = counting_from(201);
  return grant;
}

Hello sized_hello() {
  Hello hello = authenticating_hello();
  hello.features |= kSlotSizes;
  hello.request_slot_size = 4096;
  hello.response_slot_size = 8192;
  return hello;
}

Grant grant_with_rights() {
  Grant grant = authenticating_grant();
  grant.features |= kRights;
  grant.rights = egret::op::kMayRead | egret::op::kMayDump;
  return grant;
}

std::vector<Frame> all_frames() {
  return {encode(kHello),
          encode(kGrant),
          encode(Refusal{"why not"}),
          encode(Ready{}),
          encode(Challenge{counting_from(101)}),
          encode(ClientProof{counting_from(51)}),
          encode(authenticating_hello()),
          encode(authenticating_grant()),
          encode(sized_hello()),
          encode(grant_with_rights())};
}

std::string prefix_error(const Frame& frame) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[frame.size()]);
  std::ranges::copy(frame, exact.get());
  FrameType type{};
  std::string error;
  return decode_prefix({exact.get(), frame.size()}, type, error) ? "" : error;
}

template <typename T>
Frame with(Frame frame, size_t offset, T value) {
  REQUIRE(offset + sizeof value <= frame.size());
  std::memcpy(frame.data() + offset, &value, sizeof value);
  return frame;
}

// As a lying peer would: shorter or longer, with a prefix that agrees.
Frame resized(Frame frame, size_t size) {
  frame.resize(size);
  return with(frame, 12, static_cast<uint32_t>(size));
}

template <typename Body>
bool decodes(const Frame& frame) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[frame.size()]);
  std::ranges::copy(frame, exact.get());
  Body body;
  return decode({exact.get(), frame.size()}, body);
}

}  // namespace

TEST_CASE("frames come back as they were") {
  Hello hello;
  REQUIRE(decode(encode(kHello), hello));
  CHECK(hello.features == kHello.features);
  CHECK(hello.worker_id == kHello.worker_id);
  CHECK(hello.window == kHello.window);
  Grant grant;
  REQUIRE(decode(encode(kGrant), grant));
  CHECK(grant.features == 2);
  CHECK(grant.session_id == 2);
  CHECK(grant.nonce == kGrant.nonce);
  CHECK(grant.epoch == 4);
  CHECK(grant.hash_seed == 5);
  CHECK(grant.item_size_max == 1 << 20);
  CHECK(grant.layout.to_string() == kGrant.layout.to_string());
  Refusal refusal;
  REQUIRE(decode(encode(Refusal{"why not"}), refusal));
  CHECK(refusal.reason == "why not");
  CHECK(refusal.come_back_ms == 0);
  REQUIRE(decode(encode(Refusal{.reason = "busy", .come_back_ms = 1234}), refusal));
  CHECK(refusal.reason == "busy");
  CHECK(refusal.come_back_ms == 1234);
  REQUIRE(decode(encode(returning_hello()), hello));
  CHECK(hello.asked_back == 3);
  REQUIRE(decode(encode(authenticating_hello()), hello));
  CHECK(hello.asked_back == 0);
  CHECK(hello.features == kAuthenticate);
  CHECK(hello.window == kHello.window);
  CHECK(hello.nonce == counting_from(1));
  Challenge challenge;
  REQUIRE(decode(encode(Challenge{counting_from(101)}), challenge));
  CHECK(challenge.nonce == counting_from(101));
  ClientProof proof;
  REQUIRE(decode(encode(ClientProof{counting_from(51)}), proof));
  CHECK(proof.proof == counting_from(51));
  REQUIRE(decode(encode(authenticating_grant()), grant));
  CHECK(grant.layout.to_string() == kGrant.layout.to_string());
  CHECK(grant.proof == counting_from(201));
}

TEST_CASE("slot sizes and rights lie behind nonce and proof, where they were agreed on; else they are as of 0.1.0") {
  Hello hello;
  REQUIRE(decode(encode(sized_hello()), hello));
  CHECK(hello.nonce == counting_from(1));
  CHECK(hello.request_slot_size == 4096);
  CHECK(hello.response_slot_size == 8192);
  REQUIRE(decode(encode(authenticating_hello()), hello));
  CHECK(hello.request_slot_size == 0);
  CHECK(hello.response_slot_size == 0);
  Grant grant;
  REQUIRE(decode(encode(grant_with_rights()), grant));
  CHECK(grant.proof == counting_from(201));
  CHECK(grant.rights == (egret::op::kMayRead | egret::op::kMayDump));
  REQUIRE(decode(encode(authenticating_grant()), grant));
  CHECK(grant.rights == egret::op::kAllRights);
}

TEST_CASE("a hello for a member behind a proxy names it, behind everything else") {
  Hello hello;
  REQUIRE(decode(encode(relayed_hello()), hello));
  CHECK(hello.member == 0x0807060504030201);
  CHECK(hello.asked_back == 3);
  REQUIRE(decode(encode(returning_hello()), hello));
  CHECK(hello.member == 0);
  for (size_t size = 16; size < 16 + 20 + 4 + 8; ++size)
    CHECK_FALSE(decodes<Hello>(resized(encode(relayed_hello()), size)));
}

TEST_CASE("the backend's proof covers the rights that it grants") {
  Grant grant = grant_with_rights();
  const Transcript transcript;
  const egret::base::Secret secret("0123456789abcdef");
  const Proof proof = transcript.server_proof(secret, encode(grant));
  grant.rights = egret::op::kAllRights;
  CHECK(proof != transcript.server_proof(secret, encode(grant)));
}

TEST_CASE("nonces and proofs are in a frame only where they were agreed on") {
  Hello hello = authenticating_hello();
  hello.features = 0;
  Hello back;
  REQUIRE(decode(encode(hello), back));
  CHECK(back.nonce == HandshakeNonce{});
  Grant grant = authenticating_grant();
  grant.features = 0;
  Grant granted;
  REQUIRE(decode(encode(grant), granted));
  CHECK(granted.proof == Proof{});
}

TEST_CASE("sizes and prefix are those of the format document") {
  CHECK(encode(kHello).size() == 16 + 20);
  CHECK(encode(kGrant).size() == 16 + 60);
  CHECK(encode(Refusal{"why not"}).size() == 16 + 2 + 7);
  CHECK(encode(Ready{}).size() == 16);
  CHECK(encode(Challenge{}).size() == 16 + 32);
  CHECK(encode(ClientProof{}).size() == 16 + 32);
  CHECK(encode(authenticating_hello()).size() == 16 + 20 + 32);
  CHECK(encode(authenticating_grant()).size() == 16 + 60 + 32);
  CHECK(encode(sized_hello()).size() == 16 + 20 + 32 + 8);
  CHECK(encode(returning_hello()).size() == 16 + 20 + 4);
  CHECK(encode(relayed_hello()).size() == 16 + 20 + 4 + 8);
  CHECK(encode(Refusal{.reason = "busy", .come_back_ms = 1}).size() == 16 + 2 + 4 + 4);
  CHECK(encode(grant_with_rights()).size() == 16 + 60 + 32 + 4);
  const unsigned char expected[16] = {'G', 'R', 'E', 'T', 'F', 'W', 'P', '1', 1, 0, 1, 0, 36, 0, 0, 0};
  CHECK(std::memcmp(encode(kHello).data(), expected, sizeof expected) == 0);
  FrameType type{};
  std::string error;
  const FrameType types[] = {FrameType::kHello,     FrameType::kGrant, FrameType::kRefusal, FrameType::kReady,
                             FrameType::kChallenge, FrameType::kProof, FrameType::kHello,   FrameType::kGrant,
                             FrameType::kHello,     FrameType::kGrant};
  for (size_t i = 0; i < all_frames().size(); ++i) {
    REQUIRE(decode_prefix(all_frames()[i], type, error));
    CHECK(type == types[i]);
  }
}

TEST_CASE("a frame cut anywhere is refused, also when its prefix agrees with the cut") {
  for (const Frame& frame : all_frames()) {
    for (size_t size = 0; size < frame.size(); ++size) {
      CHECK(prefix_error({frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size)}) != "");
    }
  }
  for (size_t size = 16; size < 16 + 20; ++size) CHECK_FALSE(decodes<Hello>(resized(encode(kHello), size)));
  for (size_t size = 16; size < 16 + 60; ++size) CHECK_FALSE(decodes<Grant>(resized(encode(kGrant), size)));
  for (size_t size = 16; size < 16 + 32; ++size) {
    CHECK_FALSE(decodes<Challenge>(resized(encode(Challenge{}), size)));
    CHECK_FALSE(decodes<ClientProof>(resized(encode(ClientProof{}), size)));
  }
  for (size_t size = 16; size < 16 + 20 + 32; ++size) {
    CHECK_FALSE(decodes<Hello>(resized(encode(authenticating_hello()), size)));
  }
  for (size_t size = 16; size < 16 + 60 + 32; ++size) {
    CHECK_FALSE(decodes<Grant>(resized(encode(authenticating_grant()), size)));
  }
  for (size_t size = 16; size < 16 + 9; ++size)
    CHECK_FALSE(decodes<Refusal>(resized(encode(Refusal{"why not"}), size)));
}

TEST_CASE("decoding less than a prefix is refused, not read") {
  for (size_t size = 0; size < 16; ++size) {
    const Frame frame(size);
    CHECK_FALSE(decodes<Hello>(frame));
    CHECK_FALSE(decodes<Grant>(frame));
    CHECK_FALSE(decodes<Refusal>(frame));
    CHECK_FALSE(decodes<Challenge>(frame));
    CHECK_FALSE(decodes<ClientProof>(frame));
  }
}

TEST_CASE("the prefix is looked at before anything else, and says what is wrong") {
  const Frame hello = encode(kHello);
  CHECK(prefix_error({}) == "not an egret handshake");
  for (size_t i = 0; i < 8; ++i) CHECK(prefix_error(with(hello, i, uint8_t{0})) == "not an egret handshake");
  CHECK(prefix_error(with(hello, 8, uint16_t{0})) == "the peer speaks version 0, this side 1 to 1");
  CHECK(prefix_error(with(hello, 8, uint16_t{2})) == "the peer speaks version 2, this side 1 to 1");
  CHECK(prefix_error(with(hello, 8, uint16_t{0xffff})) == "the peer speaks version 65535, this side 1 to 1");
  for (const uint32_t length : {0u, 16u, 35u, 37u, 0xffff'ffffu}) {
    CHECK(prefix_error(with(hello, 12, length)) == "a handshake frame whose length is wrong");
  }
  CHECK(prefix_error(resized(hello, kMaxFrame + 1)) == "a handshake frame whose length is wrong");
  CHECK(prefix_error(resized(hello, kMaxFrame)) == "");
  for (const uint8_t type : {uint8_t{0}, uint8_t{11}, uint8_t{255}}) {
    CHECK(prefix_error(with(hello, 10, type)) == "a handshake frame of unknown type " + std::to_string(type));
  }
}

TEST_CASE("what a later version adds at the end of a frame is passed over") {
  CHECK(decodes<Hello>(resized(encode(kHello), 100)));
  CHECK(decodes<Grant>(resized(encode(kGrant), 100)));
  CHECK(decodes<Hello>(resized(encode(authenticating_hello()), 100)));
  CHECK(decodes<Grant>(resized(encode(authenticating_grant()), 200)));
  CHECK(decodes<Challenge>(resized(encode(Challenge{}), 100)));
  CHECK(decodes<ClientProof>(resized(encode(ClientProof{}), 100)));
}

TEST_CASE("a layout that no honest backend grants is refused") {
  for (const RegionLayout& layout :
       {RegionLayout{0, 8, 4096, 4096}, RegionLayout{257, 8, 4096, 4096}, RegionLayout{0xffff'ffff, 8, 4096, 4096},
        RegionLayout{4, 0, 4096, 4096}, RegionLayout{4, 65, 4096, 4096}, RegionLayout{4, 8, 0, 4096},
        RegionLayout{4, 8, 4096, 0xffff'ffff}, RegionLayout{4, 8, 4097, 4096}}) {
    Grant grant = kGrant;
    grant.layout = layout;
    CHECK_FALSE(decodes<Grant>(encode(grant)));
  }
}

TEST_CASE("a refusal's reason is one printable line of bounded length, whoever wrote it") {
  Refusal refusal;
  REQUIRE(decode(encode(Refusal{"two\nlines \x1b[31m\xff"}), refusal));
  CHECK(refusal.reason == "two?lines ?[31m?");
  const Frame longest = encode(Refusal{.reason = std::string(10'000, 'x'), .come_back_ms = 7});
  CHECK(longest.size() == kMaxFrame);
  CHECK(prefix_error(longest) == "");
  REQUIRE(decode(longest, refusal));
  CHECK(refusal.reason.size() == kMaxFrame - 16 - 2 - 4);
  CHECK(refusal.come_back_ms == 7);
  CHECK_FALSE(decodes<Refusal>(with(encode(Refusal{"short"}), 16, uint16_t{6})));
  CHECK_FALSE(decodes<Refusal>(with(encode(Refusal{"short"}), 16, uint16_t{0xffff})));
  REQUIRE(decode(encode(Refusal{}), refusal));
  CHECK(refusal.reason.empty());
}
