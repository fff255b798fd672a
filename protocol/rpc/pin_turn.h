// A mutex for the one pinned version that the server keeps for a lane. Thread: the worker's.
#pragma once

namespace egret::rpc {

class PinTurn {
 public:
  // Call it before requesting the pin. False: another large get has it.
  bool take(const void* who) {
    if (holder_ == nullptr) holder_ = who;
    return holder_ == who;
  }
  // Does nothing if another one has it.
  void give_back(const void* who) {
    if (holder_ == who) holder_ = nullptr;
  }

 private:
  const void* holder_ = nullptr;
};

}  // namespace egret::rpc
