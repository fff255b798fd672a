#include "client/engine/call.h"

#include "client/engine/engine.h"
#include "client/engine/upload.h"

namespace egret::client {

Call::Call(Engine& engine) : engine_(engine) {}

Call::~Call() = default;

void Call::on_result(const op::Result& result) {
  engine_.on_result(*this, result);
}

// The value is another one by now, of another length.
bool Call::on_length(rpc::LargeGet&, uint32_t length) {
  engine_.value_memory_ += length - held_bytes_;
  held_bytes_ = length;
  return true;
}

void Call::on_large_get(rpc::LargeGet&) {
  engine_.on_fetched(*this);
}

Call* CallPool::take() {
  if (in_use_ == most_) return nullptr;
  ++in_use_;
  if (free_ == nullptr) {
    calls_.push_back(std::make_unique<Call>(engine_));
    return calls_.back().get();
  }
  Call* const call = free_;
  free_ = call->next_;
  return call;
}

void CallPool::give(Call& call) {
  --in_use_;
  call.state_ = Call::State::kFree;
  call.next_ = free_;
  free_ = &call;
}

}  // namespace egret::client
