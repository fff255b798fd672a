// A mutex for the one pinned version that the server keeps for a lane. While the door is closed, nobody takes it anew.
// Thread: the worker's.
#pragma once

namespace egret::rpc {

class PinTurn {
 public:
  // Call it before requesting the pin. False: another large get has it.
  bool take(const void* who) {
    if (holder_ == nullptr && !is_closed_) holder_ = who;
    return holder_ == who;
  }
  // Does nothing if another one has it.
  void give_back(const void* who) {
    if (holder_ == who) holder_ = nullptr;
  }
  void close(bool closed) { is_closed_ = closed; }
  bool is_free() const { return holder_ == nullptr; }

 private:
  bool is_closed_ = false;
  const void* holder_ = nullptr;
};

}  // namespace egret::rpc
