// The frames by which slot clients learn who the members of a pool are.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "wire/handshake.h"
#include "wire/pool_frames.h"

using namespace egret::wire;

namespace {

using Frame = std::vector<std::byte>;

const PoolHead kPool{.features = 1,
                     .version = 7,
                     .members = 2,
                     .rights = 3,
                     .placement = 1,
                     .is_restricted = true,
                     .op_timeout_ms = 2000};
const MemberFrame kMember{.version = 7,
                          .tag = 0x0807060504030201,
                          .index = 1,
                          .weight = 3,
                          .state = MemberState::kEjected,
                          .ways = kByRelay | kStraightOnRequest,
                          .name = "one",
                          .address = "rdma:10.0.0.1:11311"};
const MemberStateFrame kState{.version = 7, .index = 1, .state = MemberState::kHeldBack};

template <typename Body>
bool decodes(const Frame& frame, Body* body = nullptr) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[frame.size()]);
  std::ranges::copy(frame, exact.get());
  Body read;
  const bool is_good = decode({exact.get(), frame.size()}, read);
  if (body != nullptr) *body = read;
  return is_good;
}

Frame resized(Frame frame, size_t size) {
  frame.resize(size);
  const auto length = static_cast<uint32_t>(size);
  std::memcpy(frame.data() + 12, &length, sizeof length);
  return frame;
}

FrameType type_of(const Frame& frame) {
  FrameType type{};
  std::string error;
  REQUIRE(decode_prefix(frame, type, error, kMaxPoolFrame));
  return type;
}

}  // namespace

TEST_CASE("frames of a pool come back as they were") {
  PoolHead pool;
  REQUIRE(decodes(encode(kPool), &pool));
  CHECK(pool.version == 7);
  CHECK(pool.members == 2);
  CHECK(pool.rights == 3);
  CHECK(pool.placement == 1);
  CHECK(pool.is_restricted);
  CHECK(pool.op_timeout_ms == 2000);
  MemberFrame member;
  REQUIRE(decodes(encode(kMember), &member));
  CHECK(member.version == 7);
  CHECK(member.tag == 0x0807060504030201);
  CHECK(member.index == 1);
  CHECK(member.weight == 3);
  CHECK(member.state == MemberState::kEjected);
  CHECK(member.ways == (kByRelay | kStraightOnRequest));
  CHECK(member.name == "one");
  CHECK(member.address == "rdma:10.0.0.1:11311");
  MemberStateFrame state;
  REQUIRE(decodes(encode(kState), &state));
  CHECK(state.version == 7);
  CHECK(state.index == 1);
  CHECK(state.state == MemberState::kHeldBack);
}

TEST_CASE("sizes and types are those of the format document") {
  CHECK(encode(Ask{}).size() == 16 + 8);
  CHECK(encode(kPool).size() == 16 + 32);
  CHECK(encode(kMember).size() == 16 + 32 + 3 + 19);
  CHECK(encode(kState).size() == 16 + 16);
  CHECK(static_cast<int>(type_of(encode(Ask{}))) == 7);
  CHECK(static_cast<int>(type_of(encode(kPool))) == 8);
  CHECK(static_cast<int>(type_of(encode(kMember))) == 9);
  CHECK(static_cast<int>(type_of(encode(kState))) == 10);
  MemberFrame longest = kMember;
  longest.name = std::string(10'000, 'n');
  longest.address = std::string(10'000, 'a');
  const Frame frame = encode(longest);
  CHECK(frame.size() <= kMaxPoolFrame);
  CHECK(decodes<MemberFrame>(frame));
}

TEST_CASE("a frame of a pool that is cut anywhere is refused; one that goes on is not") {
  for (size_t size = 16; size < 16 + 8; ++size) CHECK_FALSE(decodes<Ask>(resized(encode(Ask{}), size)));
  for (size_t size = 16; size < 16 + 32; ++size) CHECK_FALSE(decodes<PoolHead>(resized(encode(kPool), size)));
  for (size_t size = 16; size < encode(kMember).size(); ++size)
    CHECK_FALSE(decodes<MemberFrame>(resized(encode(kMember), size)));
  for (size_t size = 16; size < 16 + 16; ++size) CHECK_FALSE(decodes<MemberStateFrame>(resized(encode(kState), size)));
  CHECK(decodes<PoolHead>(resized(encode(kPool), 100)));
  CHECK(decodes<MemberFrame>(resized(encode(kMember), 200)));
}

TEST_CASE("what no honest proxy says of a pool is refused") {
  PoolHead pool = kPool;
  pool.version = 0;
  CHECK_FALSE(decodes<PoolHead>(encode(pool)));
  pool = kPool;
  pool.members = kMaxPoolMembers + 1;
  CHECK_FALSE(decodes<PoolHead>(encode(pool)));
  pool = kPool;
  pool.placement = 2;
  CHECK_FALSE(decodes<PoolHead>(encode(pool)));
  for (const auto& spoil : std::vector<void (*)(MemberFrame&)>{
           [](MemberFrame& member) { member.weight = 0; }, [](MemberFrame& member) { member.tag = 0; },
           [](MemberFrame& member) { member.index = kMaxPoolMembers; },
           [](MemberFrame& member) { member.name.clear(); }, [](MemberFrame& member) { member.name = "a b"; },
           [](MemberFrame& member) { member.address = "a\x1b"; },
           [](MemberFrame& member) { member.state = static_cast<MemberState>(3); }}) {
    MemberFrame member = kMember;
    spoil(member);
    CHECK_FALSE(decodes<MemberFrame>(encode(member)));
  }
  MemberStateFrame state = kState;
  state.state = static_cast<MemberState>(3);
  CHECK_FALSE(decodes<MemberStateFrame>(encode(state)));
}
