// A storage command whose value does not fit a request slot: its bytes go to the backend as they arrive, from the input
// directly into request slots, or into the store if that is this thread's (rpc::LargeSet). The commit's result answers
// the command.
//
//   kValueBegin ─▶ begin: route, order, room at the backend ─▶ kValuePart, … ─▶ part ─▶ kValueEnd ─▶ end: commit
//
// If the backend has no room, the bytes are collected first, charged to large_value_memory, and sent when they are
// complete. If the key has got another owner meanwhile, the copy there is removed before the answer (pool::UploadCommit).
// While an upload waits for credit, only its own client is not read. Thread: the worker's.
#pragma once

#include <memory>
#include <string_view>

#include "memcache/answer.h"
#include "proxy/commands/client_context.h"
#include "proxy/commands/keys.h"
#include "proxy/commands/observe.h"
#include "rpc/large/large_set.h"

namespace egret::proxy {

class Uploads {
 public:
  explicit Uploads(ClientContext& client) : client_(client) {}
  ~Uploads();

  // Whether a value is being received.
  bool is_open() const { return upload_ != nullptr; }
  // Whether a part of `available` bytes should be sent now: it is the last, fills a slot, or is large enough.
  bool is_worth_sending(size_t available) const;

  // Room for the value's next bytes, as many as should be received at once (rpc::LargeSet::begin_part). False: there is none now;
  // receive them elsewhere, and call part().
  bool begin_direct(op::PartRoom& room);
  void end_direct(const op::PartRoom& room, uint32_t length) { upload_->end_part(room, length); }
  // Bytes of the value that have not been sent to the backend.
  uint32_t left() const { return upload_->left(); }

  Outcome begin();
  // Sends a part, and removes the sent bytes from the front of the command's value.
  Outcome part();
  Outcome end();
  // For a value that arrived whole but does not fit a slot of this backend. If it had to wait, call go_on_whole().
  Outcome store_whole(const KeyOp& change);
  Outcome go_on_whole();

 private:
  bool gives_up();
  void start(const KeyOp& change);
  bool collect();
  void give_collected();
  Outcome refuse_too_large();
  Outcome commit();
  Outcome fail(op::ResultCode code);
  void forget();

  ClientContext& client_;
  rpc::LargeSet* upload_ = nullptr;    // deletes itself after release() or abandon()
  bool is_given_up_ = false;           // its lane answered nothing for op_timeout: the rest of the value is dropped
  bool is_too_large_ = false;          // refused: only the commit is sent, so that the backend counts it
  std::unique_ptr<char[]> collected_;  // null: bytes are sent as they arrive
  uint32_t collected_size_ = 0;
  uint32_t collected_sent_ = 0;
  // Copies of the command's fields, since its views become invalid before the value's end.
  memcache::Question question_;
  std::unique_ptr<Observed> observed_;
};

}  // namespace egret::proxy
