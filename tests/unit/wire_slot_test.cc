// The layout of a region and the checksum of a message.
#include <cstring>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "wire/codec.h"
#include "wire/slot.h"

using namespace egret::wire;

TEST_CASE("every slot of a layout has a place of its own, and all lie within the memory") {
  const RegionLayout layouts[] = {
      {1, 2, 1024, 1024}, {3, 8, 4096, 1024}, {4, 5, 1088, 4096}, {256, 2, 1024, 1024}, {2, 64, 65536, 65536}};
  for (const RegionLayout& layout : layouts) {
    CAPTURE(layout.to_string());
    REQUIRE(layout.is_valid());
    std::set<size_t> requests;
    std::set<size_t> responses;
    for (uint32_t lane = 0; lane < layout.lanes; ++lane) {
      CHECK(layout.want_offset(lane) == lane * 64);
      for (uint64_t seq = 1; seq <= layout.window; ++seq) {
        requests.insert(layout.request_offset(lane, seq));
        responses.insert(layout.response_offset(lane, seq));
        CHECK(layout.request_offset(lane, seq) == layout.request_offset(lane, seq + layout.window));
        CHECK(layout.response_offset(lane, seq) == layout.response_offset(lane, seq + 7 * uint64_t{layout.window}));
      }
    }
    const size_t slots = size_t{layout.lanes} * layout.window;
    CHECK(requests.size() == slots);
    CHECK(responses.size() == slots);
    CHECK(*requests.begin() == layout.lanes * sizeof(LaneLine));
    CHECK(*requests.rbegin() + layout.request_slot_size == layout.request_bytes());
    CHECK(*responses.begin() == 0);
    CHECK(*responses.rbegin() + layout.response_slot_size == layout.response_bytes());
    for (const size_t offset : requests) CHECK(offset % 64 == 0);
  }
}

TEST_CASE("a layout that no backend may grant is not valid") {
  const RegionLayout good{4, 8, 4096, 4096};
  CHECK(good.is_valid());
  CHECK_FALSE(RegionLayout{}.is_valid());
  const auto with = [&](auto field, uint32_t value) {
    RegionLayout layout = good;
    layout.*field = value;
    return layout.is_valid();
  };
  CHECK(with(&RegionLayout::lanes, 1));
  CHECK(with(&RegionLayout::lanes, kMaxLanes));
  CHECK_FALSE(with(&RegionLayout::lanes, 0));
  CHECK_FALSE(with(&RegionLayout::lanes, kMaxLanes + 1));
  CHECK_FALSE(with(&RegionLayout::lanes, 0xffff'ffff));
  CHECK_FALSE(with(&RegionLayout::window, 1));
  CHECK_FALSE(with(&RegionLayout::window, kMaxWindow + 1));
  const std::pair<uint32_t RegionLayout::*, uint32_t> sizes[] = {{&RegionLayout::request_slot_size, kMaxSlotSize},
                                                                 {&RegionLayout::response_slot_size, kMaxLongSlotSize}};
  for (const auto& [size, most] : sizes) {
    CHECK(with(size, kMinSlotSize));
    CHECK(with(size, most));
    CHECK_FALSE(with(size, 0));
    CHECK_FALSE(with(size, kMinSlotSize - 64));
    CHECK_FALSE(with(size, most + 64));
    CHECK_FALSE(with(size, 4096 + 8));
    CHECK_FALSE(with(size, 0xffff'ffc0));
  }
}

TEST_CASE("the largest layout's sizes do not overflow") {
  const RegionLayout largest{kMaxLanes, kMaxWindow, kMaxSlotSize, kMaxLongSlotSize};
  REQUIRE(largest.is_valid());
  CHECK(largest.response_bytes() == uint64_t{3} << 30);  // offsets in it fit 32 bits: tcp/frames.h
  CHECK(largest.request_bytes() == (uint64_t{1} << 30) + kMaxLanes * sizeof(LaneLine));
}

TEST_CASE("what a session of 16 lanes takes with the slots that it begins with, at either end") {
  const RegionLayout small{.lanes = 16, .window = 2, .request_slot_size = 1216, .response_slot_size = 1216};
  REQUIRE(small.is_valid());
  const auto pages = [](size_t bytes) { return (bytes + 4095) / 4096 * 4096; };
  const size_t backend = pages(small.request_bytes()) + pages(small.response_bytes());
  CHECK(backend == 80 * 1024);
  // The client has images of both memories, a reply slot for each response slot, and a pointer for each op under way.
  const size_t client = backend + pages(small.response_bytes());
  const size_t heap = size_t{small.lanes} * small.window * max_ops(small) * sizeof(void*);
  CHECK(client == 120 * 1024);
  CHECK(heap <= 41 * 1024);
  CHECK(100 * (client + heap) <= 64'000'000);
}

TEST_CASE("a checksum is of one session, one seq and these very bytes") {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const uint64_t sum = message_checksum(bytes.data(), bytes.size(), 1000, 5);
  CHECK(sum == message_checksum(bytes.data(), bytes.size(), 1000, 5));
  CHECK(sum != message_checksum(bytes.data(), bytes.size(), 1001, 5));
  CHECK(sum != message_checksum(bytes.data(), bytes.size(), 1000, 6));
  CHECK(sum != message_checksum(bytes.data(), bytes.size() - 1, 1000, 5));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    CHECK(sum != message_checksum(bytes.data(), bytes.size(), 1000, 5));
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
}

TEST_CASE("the next round of a slot never passes for this one, whatever the window") {
  const std::byte bytes[8] = {};
  std::set<uint64_t> sums;
  for (uint64_t seq = 1; seq <= 10'000; ++seq) sums.insert(message_checksum(bytes, sizeof bytes, 42, seq));
  CHECK(sums.size() == 10'000);
}

TEST_CASE("headers print what one looks for") {
  CHECK(to_string(RequestHeader{.seq = 7, .checksum = 1, .length = 20, .op_count = 3, .flags = 0}) ==
        "request seq 7 length 20 ops 3 flags 0");
  ResponseHeader response{};
  response.seq = 8;
  response.length = 30;
  response.result_count = 2;
  response.status = 1;
  response.hints = kLaneSlept;
  response.processing_ns = 1500;
  response.asleep = 9;
  CHECK(to_string(response) == "response seq 8 length 30 results 2 status 1 hints 2 processing 1500 ns asleep 9");
  CHECK(RegionLayout{2, 8, 4096, 1024}.to_string() == "2 lanes x 8 slots of 4096 + 1024 bytes = 82048 bytes");
}

TEST_CASE("a seal covers head and body, or the head only; of this session and this seq in either case") {
  std::vector<std::byte> bytes(64, std::byte{7});
  const Seal whole{.nonce = 5, .heads_only = false};
  const Seal heads{.nonce = 5, .heads_only = true};
  const uint64_t of_whole = whole.checksum(bytes.data(), 16, 48, 3);
  const uint64_t of_head = heads.checksum(bytes.data(), 16, 48, 3);
  CHECK(of_whole == message_checksum(bytes.data(), 64, 5, 3));
  CHECK(of_head == message_checksum(bytes.data(), 16, 5, 3));
  bytes[40] = std::byte{8};
  CHECK(whole.checksum(bytes.data(), 16, 48, 3) != of_whole);
  CHECK(heads.checksum(bytes.data(), 16, 48, 3) == of_head);
  bytes[15] = std::byte{8};
  CHECK(heads.checksum(bytes.data(), 16, 48, 3) != of_head);
  CHECK(heads.checksum(bytes.data(), 16, 48, 4) !=
        Seal{.nonce = 6, .heads_only = true}.checksum(bytes.data(), 16, 48, 4));
}
