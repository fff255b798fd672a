// Values that a client of an inbound lane sends in parts, and sets that do not fit a request slot of the outbound
// session: both go to the backend as one of the outbound session's own uploads (LargeSet), under its own id.
//
//   upload ops ─ part() ─▶ room at the backend: sent on as they come ─────────────┐
//                   └ no room: collected here, sent when the commit comes ────────┴─ commit() ─▶ the commit's result
//   a set that is too long ─ store() ─▶ sent in parts at once, and a commit
//
// A part is answered when it is taken; what the backend thinks of it, the commit's result says. So no upload that waits
// for its client's bytes keeps another client's waiting: who finds no room is collected, and only if there is no memory
// either it waits, as rpc/upload_room.h says.
//
// Of one inbound lane; everything is of the outbound lane of the same number. Thread: the worker's. Memory: what is
// collected, charged to RelayMemory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "op/op.h"
#include "rpc/client_session.h"
#include "rpc/large/large_set.h"
#include "rpc/relay/relay_memory.h"

namespace egret::rpc::relay {

// What came of an op.
enum class Progress : uint8_t {
  kAnswer,   // it is done with: answer it with the code at hand
  kAwaited,  // the backend's result will answer it
  kStalled,  // try again when there is credit
};

class InboundUploads {
 public:
  static constexpr size_t kMostOpen = 64;              // as at a backend, and so is this:
  static constexpr uint64_t kIdleNs = 30'000'000'000;  // an upload without a new part for so long is dropped

  // `may_wait`: RelayMemory::take().
  InboundUploads(ClientSession& session, uint32_t& next_id, RelayMemory& memory, uint32_t user, bool may_wait)
      : session_(session), next_id_(next_id), memory_(memory), user_(user), may_wait_(may_wait) {}
  ~InboundUploads();
  InboundUploads(const InboundUploads&) = delete;
  InboundUploads& operator=(const InboundUploads&) = delete;

  // Of ops whose keys belong to the lane. `code` is set with kAnswer. A call that stalled is to be repeated with the same
  // op before any other.
  Progress part(const op::Op& op, op::ResultCode& code);
  Progress commit(const op::Op& op, Waiter* waiter, op::ResultCode& code);
  void abort(const op::Op& op);
  Progress store(const op::Op& op, Waiter* waiter, op::ResultCode& code);
  // Drops what its client does not go on with. Returns whether anything is open.
  bool expire(uint64_t now_ns);

 private:
  // kSent: the backend has room, parts go on at once. kCollected: bytes are kept here. kWaiting: neither yet, no part was
  // taken. kRefused: known to be too long; only its commit goes on.
  enum class State : uint8_t { kWaiting, kSent, kCollected, kRefused };
  struct Upload {
    uint32_t id = 0;  // the client's
    State state = State::kWaiting;
    LargeSet* set = nullptr;
    std::unique_ptr<char[]> bytes;
    uint32_t collected = 0;
    uint32_t sent_on = 0;   // of them
    uint64_t moved_ns = 0;  // when its last part came
  };

  Upload* find(uint32_t id);
  LargeSet* make_set(const op::Op& op, uint32_t total);
  bool find_room(Upload& upload);
  Progress send_whole(LargeSet& set, std::string_view value, uint32_t& sent);
  void give_back(Upload& upload);
  void forget(Upload& upload);

  ClientSession& session_;
  uint32_t& next_id_;
  RelayMemory& memory_;
  const uint32_t user_;
  const bool may_wait_;
  std::vector<Upload> uploads_;
  LargeSet* storing_ = nullptr;  // the set that store() sends
  uint32_t stored_ = 0;          // bytes of it that were sent
};

}  // namespace egret::rpc::relay
