// The binary protocol: packets of a client as Commands. See binary.h for their form, parser.h for the events.
//
// An error is a packet, written into the Command's own bytes. What memcached takes for a broken client (a length that
// contradicts another, a key too long) is answered and then closed; an unknown opcode is answered, its body dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/binary.h"
#include "memcache/command.h"
#include "memcache/parser.h"

namespace egret::memcache {

class BinaryParser {
 public:
  explicit BinaryParser(const Limits& limits) : limits_(limits) {}

  static size_t min_buffer(const Limits& limits);
  Step next(std::string_view input, Command& out) noexcept;
  void swallow_value();
  // Whether the next byte is the first of a packet.
  bool is_between_commands() const { return state_ == State::kPacket; }

  // Until then only SASL and version are answered, and the first other packet ends the connection.
  void require_authentication(bool required) { must_authenticate_ = required; }

 private:
  struct Packet;
  enum class State : uint8_t {
    kPacket,   // the first byte of a packet
    kValue,    // in a streamed value; left_ bytes are to come
    kSwallow,  // in bytes that nobody wants
    kRefused,  // in the key and extras of a packet that ends the connection: who is still sending would not read why
    kClosed,
  };

  Step step(std::string_view input, Command& out);
  Step packet(std::string_view input, Command& out);
  Step keyed(const Packet& packet, std::string_view input, Command& out);
  Step value(std::string_view input, Command& out);
  Step fail(const Packet& packet, binary::Status status, Command& out);
  Step fail_and_close(const Packet& packet, binary::Status status);
  Step refused(std::string_view input, Command& out);

  Limits limits_;
  State state_ = State::kPacket;
  uint8_t refused_opcode_ = 0;
  binary::Status refused_status_ = binary::Status::kOk;
  uint32_t refused_opaque_ = 0;
  bool must_authenticate_ = false;
  size_t left_ = 0;
};

static_assert(DialectParser<BinaryParser>);

}  // namespace egret::memcache
