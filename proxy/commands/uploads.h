// A storage command whose value does not fit a request slot: its bytes go to the backend as they come, straight from
// the input into request slots (rpc::LargeSet), and the command is answered by the commit's result.
//
//   kValueBegin ─▶ begin: route, order, room at the backend ─▶ kValuePart, … ─▶ part ─▶ kValueEnd ─▶ end: commit
//
// Where there is no room at the backend, the bytes are collected first, charged to large_value_memory, and sent when
// they are all here. While it waits for credit, only its own client is not read. Thread: the worker's.
#pragma once

#include <memory>
#include <string_view>

#include "memcache/answer.h"
#include "proxy/commands/client_context.h"
#include "proxy/commands/keys.h"
#include "proxy/commands/observe.h"
#include "rpc/large_set.h"

namespace egret::proxy {

class Uploads {
 public:
  explicit Uploads(ClientContext& client) : client_(client) {}
  ~Uploads();

  // A value is being received.
  bool is_open() const { return upload_ != nullptr; }
  // A part of `available` bytes is worth sending now: it is the last, fills a slot, or is large enough.
  bool is_worth_sending(size_t available) const;

  Outcome begin();
  // Takes what it has sent off the front of the command's value.
  Outcome part();
  Outcome end();
  // A value that came whole but does not fit a slot of this backend; when that had to wait: go_on_whole().
  Outcome store_whole(const KeyOp& change);
  Outcome go_on_whole();

 private:
  void start(const KeyOp& change);
  bool collect();
  void give_collected();
  Outcome refuse_too_large();
  Outcome commit();
  Outcome fail(op::ResultCode code);
  void forget();

  ClientContext& client_;
  rpc::LargeSet* upload_ = nullptr;    // deletes itself when it was released or abandoned
  bool is_too_large_ = false;          // the backend is only told of it
  std::unique_ptr<char[]> collected_;  // null: bytes are sent as they come
  uint32_t collected_size_ = 0;
  uint32_t collected_sent_ = 0;
  // What the command asked, and was noted of it: its views die before the value's end.
  memcache::Question question_;
  std::unique_ptr<Observed> observed_;
};

}  // namespace egret::proxy
