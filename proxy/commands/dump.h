// Lists the items of every backend for one client: requests a page, writes its lines, and requests the next page when
// the client has read most of the output. So a dump takes the memory of a few pages, however many items there are, and
// a client that reads slowly delays only itself.
//
//   Dump ─ Iterate ─▶ lane ─ page of records ─▶ lines ─▶ output ─ may_run_ahead() ─▶ the next page, lane or backend
//
// Thread: the worker's. It deletes itself at its end; an owner that is destroyed earlier calls abandon().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memcache/admin.h"
#include "op/op.h"
#include "op/records.h"
#include "pool/pool.h"
#include "proxy/client/output_queue.h"
#include "rpc/session_ref.h"

namespace egret::proxy {

class DumpOwner {
 public:
  // The next part of the answer.
  virtual void on_dump_text(std::string_view text) = 0;
  // The dump is over; it is destroyed after this call.
  virtual void on_dump_over() = 0;

 protected:
  ~DumpOwner() = default;
};

class Dump final : private rpc::Waiter, private rpc::CreditWaiter {
 public:
  // `output`: where the owner writes the text.
  Dump(const pool::Pool& pool, const memcache::AdminRequest& request, const OutputQueue& output, DumpOwner& owner);

  // Continues if the output has room; call it again when it may have. May end the dump.
  void go_on();
  // The owner is being destroyed.
  void abandon();

 private:
  // kResting: nothing is outstanding; go_on() continues.
  enum class State : uint8_t { kResting, kAsked, kAwaitsCredit };

  ~Dump() = default;
  void on_result(const op::Result& result) override;
  void on_credit() override;
  // The session that is being listed; null: all are done.
  rpc::ClientSession* session();
  void next_backend();
  bool write_page(std::string_view records);
  bool is_of_smallest() const;
  bool is_wanted(const op::Record& record) const;
  void write(const op::Record& record);
  void end();

  std::vector<rpc::SessionRef> sessions_;  // with the members at its beginning
  const OutputQueue& output_;
  DumpOwner* owner_;
  const memcache::AdminRequest request_;
  uint8_t only_class_ = op::kAnySizeClass;  // the class that is requested
  State state_ = State::kResting;
  size_t backend_ = 0;
  uint64_t generation_ = 0;  // of the session when its walk began
  uint32_t lane_ = 0;
  uint64_t cursor_ = 0;
  uint32_t items_ = 0;
  uint64_t written_ = 0;
  bool some_failed_ = false;
  bool is_forbidden_ = false;
  std::string text_;
};

}  // namespace egret::proxy
