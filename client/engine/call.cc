#include "client/engine/call.h"

#include "client/engine/engine.h"
#include "client/engine/upload.h"

namespace egret::client {

Call::Call(Engine& engine) : engine_(engine) {}

Call::~Call() = default;

// The value is another one by now, of another length.
bool Call::on_length(rpc::LargeGet&, uint32_t length) {
  engine_.value_memory_ += length - held_bytes_;
  held_bytes_ = length;
  return true;
}

void Call::on_large_get(rpc::LargeGet&) {
  engine_.on_fetched(*this);
}

void CallPool::make() {
  calls_.push_back(std::make_unique<Call>(engine_));
  free_ = calls_.back().get();
}

}  // namespace egret::client
