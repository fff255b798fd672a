// How many inbound gets may have their value pinned in one outbound lane at a time: the backend keeps 64 pins a lane,
// the oldest giving way, and a get that loses its pin begins again. A get that finds no seat is sent without the pin.
// Nobody says when a pin is not needed any more, so a seat is free after as long as the backend keeps a pin.
//
// Thread: the worker's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace egret::rpc::relay {

class PinSeats {
 public:
  static constexpr size_t kSeats = 32;
  static constexpr uint64_t kPinNs = 1'000'000'000;

  // One of `who`, who has one at a time.
  bool take(const void* who, uint64_t now_ns) {
    Seat* free = nullptr;
    for (Seat& seat : seats_) {
      if (seat.who == who) {
        free = &seat;
        break;
      }
      if (seat.who == nullptr || now_ns >= seat.until_ns) free = &seat;
    }
    if (free == nullptr) return false;
    *free = {who, now_ns + kPinNs};
    return true;
  }
  void leave(const void* who) {
    for (Seat& seat : seats_) {
      if (seat.who == who) seat = {};
    }
  }

 private:
  struct Seat {
    const void* who = nullptr;
    uint64_t until_ns = 0;
  };
  std::array<Seat, kSeats> seats_{};
};

}  // namespace egret::rpc::relay
