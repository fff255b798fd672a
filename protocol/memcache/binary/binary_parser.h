// The binary protocol: parses a client's packets into Commands. See binary.h for the packets, parser.h for the events.
//
// An error is a packet, written into the Command's own bytes. As in memcached, a length that contradicts another, or a
// key that is too long, is answered and ends the connection; an unknown opcode is answered, and its body is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/binary/binary.h"
#include "memcache/command.h"
#include "memcache/parser.h"

namespace egret::memcache {

class BinaryParser {
 public:
  explicit BinaryParser(const Limits& limits) : limits_(limits) {}

  static size_t min_buffer(const Limits& limits);
  Step next(std::string_view input, Command& out) noexcept;
  void swallow_value();
  void skip_part(size_t bytes) { left_ -= bytes; }
  // Whether the next byte begins a packet.
  bool is_between_commands() const { return state_ == State::kPacket; }

  // While authentication is required only SASL and version are answered; any other packet ends the connection.
  void require_authentication(bool required) { must_authenticate_ = required; }

 private:
  struct Packet;
  enum class State : uint8_t {
    kPacket,   // at the first byte of a packet
    kValue,    // in a streamed value; left_ bytes are still to come
    kSwallow,  // in bytes to drop
    kRefused,  // in the key and extras of a packet that ends the connection: read on, else the answer is lost
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
