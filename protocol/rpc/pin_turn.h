// Whose turn it is with the one pinned version that the server keeps for a lane. Thread: the worker's.
#pragma once

namespace egret::rpc {

class PinTurn {
 public:
  // Take it before asking the server for the pin. False: another has it and has not returned it yet.
  bool take(const void* who) {
    if (holder_ == nullptr) holder_ = who;
    return holder_ == who;
  }
  // Does nothing if another has it.
  void give_back(const void* who) {
    if (holder_ == who) holder_ = nullptr;
  }

 private:
  const void* holder_ = nullptr;
};

}  // namespace egret::rpc
