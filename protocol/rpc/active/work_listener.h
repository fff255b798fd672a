// Hears that there is something to do where there was nothing.
#pragma once

namespace egret::rpc {

class WorkListener {
 public:
  // Often: also when it has been told already.
  virtual void on_work() = 0;

 protected:
  ~WorkListener() = default;
};

}  // namespace egret::rpc
