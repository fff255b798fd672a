// The heads of messages: what one side writes the other reads, and nothing else passes.
#include <array>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "wire/head.h"

using namespace egret::wire;

namespace {

constexpr uint32_t kSlot = 1024;
constexpr uint64_t kSeq = 7;
constexpr std::array<Seal, 2> kSeals{{{.nonce = 5, .heads_only = false}, {.nonce = 5, .heads_only = true}}};

struct Slot {
  Slot(size_t head_size, uint32_t body_length) {
    for (size_t i = 0; i < body_length; ++i) bytes[head_size + i] = static_cast<std::byte>(i * 3);
  }
  template <typename T>
  T at(size_t offset) const {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }

  alignas(8) std::array<std::byte, kSlot> bytes{};
};

Slot request_of(uint32_t length, uint16_t op_count, const Seal& seal) {
  Slot slot(sizeof(RequestHeader), length);
  write_request_head(slot.bytes.data(), seal, kSeq, length, op_count);
  return slot;
}

Slot response_of(uint32_t length, uint16_t result_count, uint32_t processing_ns, const Seal& seal) {
  Slot slot(sizeof(ResponseHeader), length);
  write_response_head(slot.bytes.data(), seal, kSeq, length, result_count, processing_ns);
  return slot;
}

// Whether it is taken as `seq` of the session of `seal`.
bool is_read(const Slot& slot, const Seal& seal, uint64_t seq = kSeq, uint32_t slot_size = kSlot) {
  std::vector<std::byte> copy(slot_size);  // a sanitizer sees its end
  Request request;
  return read_request(slot.bytes.data(), slot_size, seal, seq, copy.data(), request);
}

}  // namespace

TEST_CASE("a request's head says how long its body is and how many ops it has; the body is copied") {
  for (const Seal& seal : kSeals) {
    for (const uint32_t length : {0u, 1u, 300u, kSlot - 24}) {
      const Slot slot = request_of(length, 256, seal);
      CHECK(slot.at<uint64_t>(0) == 0);  // the seq is for whoever publishes the message
      CHECK(slot.at<uint32_t>(16) == length);
      CHECK(slot.at<uint16_t>(20) == 256);
      CHECK(slot.at<uint16_t>(22) == 0);
      std::vector<std::byte> copy(kSlot);
      Request request;
      REQUIRE(read_request(slot.bytes.data(), kSlot, seal, kSeq, copy.data(), request));
      CHECK(request.length == length);
      CHECK(request.op_count == 256);
      CHECK(request.flags == 0);
      CHECK(request.body >= copy.data());
      CHECK(request.body + length <= copy.data() + copy.size());
      CHECK(std::memcmp(request.body, slot.bytes.data() + 24, length) == 0);
    }
  }
}

TEST_CASE("a request of another session, of another seq, torn, or longer than its slot is not read") {
  for (const Seal& seal : kSeals) {
    const Slot good = request_of(100, 2, seal);
    CHECK(is_read(good, seal));
    CHECK_FALSE(is_read(good, {.nonce = 6, .heads_only = seal.heads_only}));
    CHECK_FALSE(is_read(good, seal, kSeq + 1));
    for (size_t offset = 8; offset < 24; ++offset) {
      Slot torn = good;
      torn.bytes[offset] ^= std::byte{1};
      CHECK_FALSE(is_read(torn, seal));
    }
    Slot torn = good;
    torn.bytes[24 + 99] ^= std::byte{1};
    CHECK(is_read(torn, seal) == seal.heads_only);  // there, whoever sees the seq sees all of the body
    for (const uint32_t length : {kSlot - 23, kSlot, UINT32_MAX - 23, UINT32_MAX}) {
      Slot longer = good;
      longer.put(16, length);
      longer.put(8, seal.checksum(longer.bytes.data() + 16, 8, 0, kSeq));
      CHECK_FALSE(is_read(longer, seal));
    }
    CHECK_FALSE(is_read(good, seal, kSeq, 24 + 99));
    CHECK(is_read(good, seal, kSeq, 24 + 100));
  }
}

TEST_CASE("a response's head says how long its body is, how many results it has and how long they took") {
  for (const Seal& seal : kSeals) {
    for (const uint32_t length : {0u, 1u, 300u, kSlot - 40}) {
      Slot slot(sizeof(ResponseHeader), length);
      slot.put(16, uint64_t{99});  // asleep
      write_response_head(slot.bytes.data(), seal, kSeq, length, 256, 1'234'567);
      CHECK(slot.at<uint64_t>(0) == 0);
      CHECK_MESSAGE(slot.at<uint64_t>(16) == 99, "asleep is not the head's");
      CHECK(slot.at<uint32_t>(24) == length);
      CHECK(slot.at<uint16_t>(28) == 256);
      CHECK(slot.at<uint16_t>(30) == 0);
      CHECK(slot.at<uint32_t>(32) == 1'234'567);
      CHECK(slot.at<uint32_t>(36) == 0);
      CHECK(response_size(slot.bytes.data(), kSlot) == 40 + length);
      CHECK(is_whole_response(slot.bytes.data(), kSlot, seal, kSeq));
      Response response;
      REQUIRE(read_response_head(slot.bytes.data(), kSlot, response));
      CHECK(response.length == length);
      CHECK(response.result_count == 256);
      CHECK(response.processing_ns == 1'234'567);
      CHECK(response.body == slot.bytes.data() + 40);
    }
  }
}

TEST_CASE("a response of another session, of another seq, torn, or longer than the room there is is not whole") {
  for (const Seal& seal : kSeals) {
    const Slot good = response_of(100, 2, 5, seal);
    const auto is_whole = [&](const Slot& slot, size_t room = kSlot) {
      return is_whole_response(slot.bytes.data(), room, seal, kSeq);
    };
    CHECK(is_whole(good));
    CHECK_FALSE(is_whole_response(good.bytes.data(), kSlot, {.nonce = 6, .heads_only = seal.heads_only}, kSeq));
    CHECK_FALSE(is_whole_response(good.bytes.data(), kSlot, seal, kSeq + 1));
    for (size_t offset = 8; offset < 40; ++offset) {
      Slot torn = good;
      torn.bytes[offset] ^= std::byte{1};
      CHECK(is_whole(torn) == (offset >= 16 && offset < 24));  // asleep changes at any time
    }
    for (const size_t room : {size_t{0}, size_t{39}, size_t{40}, size_t{139}}) CHECK_FALSE(is_whole(good, room));
    CHECK(is_whole(good, 140));
    for (const uint32_t length : {kSlot - 39, kSlot, UINT32_MAX - 39, UINT32_MAX}) {
      Slot longer = good;
      longer.put(24, length);
      longer.put(8, seal.checksum(longer.bytes.data() + 24, 16, 0, kSeq));
      CHECK_FALSE(is_whole(longer));
      CHECK(response_size(longer.bytes.data(), kSlot) == 0);
      Response response;
      CHECK_FALSE(read_response_head(longer.bytes.data(), kSlot, response));
    }
  }
}

TEST_CASE("a request carries its flags, a response its hints, under the checksum") {
  for (const Seal& seal : kSeals) {
    Slot slot(sizeof(RequestHeader), 100);
    write_request_head(slot.bytes.data(), seal, kSeq, 100, 2, kPush | kTellAsleep);
    CHECK(slot.at<uint16_t>(22) == 3);
    std::vector<std::byte> copy(kSlot);
    Request request;
    REQUIRE(read_request(slot.bytes.data(), kSlot, seal, kSeq, copy.data(), request));
    CHECK(request.flags == (kPush | kTellAsleep));
    slot.put(22, uint16_t{kPush});
    CHECK_FALSE(is_read(slot, seal));
    Slot answer(sizeof(ResponseHeader), 100);
    write_response_head(answer.bytes.data(), seal, kSeq, 100, 2, 5, kLaneSlept);
    CHECK(answer.at<uint8_t>(30) == 0);
    CHECK(answer.at<uint8_t>(31) == 2);
    REQUIRE(is_whole_response(answer.bytes.data(), kSlot, seal, kSeq));
    Response response;
    CHECK_FALSE(read_response_head(answer.bytes.data(), kSlot, response));
    CHECK_FALSE(read_response_head(answer.bytes.data(), kSlot, response, kPushingIsCheap));
    REQUIRE(read_response_head(answer.bytes.data(), kSlot, response, kResponseHints));
    CHECK(response.hints == kLaneSlept);
    answer.put(31, uint8_t{0});
    CHECK_FALSE(is_whole_response(answer.bytes.data(), kSlot, seal, kSeq));
  }
}

TEST_CASE("a response with a field of a later version is not read") {
  for (const size_t offset : {30, 31, 36, 37, 38, 39}) {
    Slot slot = response_of(100, 2, 5, kSeals[0]);
    slot.bytes[offset] = std::byte{1};
    Response response;
    CHECK_FALSE(read_response_head(slot.bytes.data(), kSlot, response));
  }
}
