// A walk over the items of every backend, for one client: a page is asked for, its lines are written, the next page is
// asked for when the client has taken most of what is written. So a dump of however many items takes the memory of a
// few pages, and a client that reads slowly holds up nobody but itself.
//
//   Dump ─ Iterate ─▶ lane ─ page of records ─▶ lines ─▶ output ─ below kMaxAhead ─▶ the next page, lane or backend
//
// Thread: the worker's. It deletes itself when over; an owner that goes earlier calls abandon().
#pragma once

#include <cstdint>
#include <string>

#include "memcache/admin.h"
#include "op/op.h"
#include "op/records.h"
#include "pool/pool.h"
#include "proxy/client/output_queue.h"
#include "rpc/client_session.h"

namespace egret::proxy {

class DumpOwner {
 public:
  // More of the answer, in order.
  virtual void on_dump_text(std::string_view text) = 0;
  // All of it has been given. The object is gone after this call.
  virtual void on_dump_over() = 0;

 protected:
  ~DumpOwner() = default;
};

class Dump final : private rpc::Waiter, private rpc::CreditWaiter {
 public:
  // `output` is where the owner puts the text.
  Dump(const pool::Pool& router, const memcache::AdminRequest& request, const OutputQueue& output, DumpOwner& owner);

  // Goes on if there is room; call it again when there may be. May end it.
  void go_on();
  // The owner goes.
  void abandon();

  static constexpr size_t kMaxAhead = 64 * 1024;  // bytes that wait for the client to read them

 private:
  // kResting: go_on() will find it something to do.
  enum class State : uint8_t { kResting, kAsked, kAwaitsCredit };

  ~Dump() = default;
  void on_result(const op::Result& result) override;
  void on_credit() override;
  // The session whose turn it is; null: all have had theirs.
  rpc::ClientSession* session();
  void next_backend();
  bool write_page(std::string_view records);
  bool is_of_smallest() const;
  bool is_wanted(const op::Record& record) const;
  void write(const op::Record& record);
  void end();

  const pool::Pool& router_;
  const OutputQueue& output_;
  DumpOwner* owner_;
  const memcache::AdminRequest request_;
  uint8_t only_class_ = op::kAnySizeClass;  // that the backend is asked for
  State state_ = State::kResting;
  size_t backend_ = 0;
  uint64_t generation_ = 0;  // of its session, since its walk began
  uint32_t lane_ = 0;
  uint64_t cursor_ = 0;
  uint32_t items_ = 0;
  uint64_t written_ = 0;
  bool some_failed_ = false;
  std::string text_;
};

}  // namespace egret::proxy
