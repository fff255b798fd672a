// A request of the binary protocol, as a test writes it down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "memcache/binary/binary.h"

namespace egret::memcache {

template <typename T>
std::string big(T number) {
  std::string bytes(sizeof number, '\0');
  binary::write_big(bytes.data(), number);
  return bytes;
}

struct Packet {
  Packet(binary::Opcode code, std::string key_bytes = {}, std::string value_bytes = {}, std::string extra_bytes = {})
      : opcode(code),
        key(std::move(key_bytes)),
        value(std::move(value_bytes)),
        extras(std::move(extra_bytes)),
        body_length(static_cast<uint32_t>(key.size() + value.size() + extras.size())) {}

  std::string bytes() const {
    return std::string{binary::kRequestMagic, static_cast<char>(opcode)} + big(static_cast<uint16_t>(key.size())) +
           static_cast<char>(extras.size()) + std::string(3, '\0') + big(body_length) + std::string(opaque) + big(cas) +
           extras + key + value;
  }

  binary::Opcode opcode;
  std::string key;
  std::string value;
  std::string extras;
  uint32_t body_length;  // may be made to lie
  std::string_view opaque = "abcd";
  uint64_t cas = 0;
};

}  // namespace egret::memcache
