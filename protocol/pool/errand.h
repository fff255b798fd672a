// A short session with one member, for what is asked beside the data path: it opens, sends the ops that its owner gives
// it, hands over the results, and closes. Nothing is tried again.
//
//   start ─▶ opens ─ on_errand_open: send() … ─▶ on_errand_result (may send() more) … ─ all answered ─▶ on_errand_over
//                └ no session, or no answer to an op in time ──────────────────────────────────────────▶ on_errand_over
//
// Thread: that of its event loop (the control thread's), which it never keeps busy while it waits. Destroying it ends
// it, without a further call; not within on_errand_open() or on_errand_result().
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <string>

#include "base/status.h"
#include "events/event.h"
#include "op/op.h"
#include "rpc/client_session.h"

namespace egret::pool {

class Errand;

class ErrandOwner {
 public:
  // The member has so many partitions. With nothing sent in this call, the errand is over.
  virtual void on_errand_open(Errand& errand, uint32_t partitions) = 0;
  // The answer to the op that was sent with `tag`. Answers of one partition come in the order of its ops. The value is
  // valid during the call; it may be a part (Result::is_partial), since ops that wait together share a slot.
  virtual void on_errand_result(Errand& errand, uint64_t tag, const op::Result& result) = 0;
  // Everything is answered, or why not. Last call; the errand may be destroyed in it.
  virtual void on_errand_over(Errand& errand, const base::Status& status) = 0;

 protected:
  ~ErrandOwner() = default;
};

class Errand final : private rpc::SessionObserver {
 public:
  // The partition that the op's key belongs to.
  static constexpr uint32_t kOfKey = UINT32_MAX;

  // Of a session that takes little memory on both sides: `usual` says the limits of time and the secret.
  static rpc::SessionOptions options(const rpc::SessionOptions& usual, const std::string& address);

  Errand(events::EventLoop& loop, const base::Clock& clock, const rpc::SessionOptions& options, ErrandOwner& owner,
         rpc::ClientSession::Connect connect = transport::connect);
  ~Errand();
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;

  // Once. Calls the owner from the loop, never before it returns.
  void start();
  // Within on_errand_open() or on_errand_result(), or while it is kept open. Key and value are copied; its hash is
  // filled in. Ops wait here for room in the session's slots. An op that does not fit a slot must not be given.
  void send(const op::Op& op, uint32_t partition, uint64_t tag = 0);
  // Whether it goes on when everything is answered, so that more may be sent later; false, and it is over then.
  void keep_open(bool is_kept);
  // What the member has granted; from on_errand_open() on.
  const wire::Grant& grant() const { return session_.grant(); }

 private:
  struct Queued {
    op::Op op;  // its views are not used
    std::string key, value;
    uint32_t partition = 0;
    uint64_t tag = 0;
  };
  struct Asked final : rpc::Waiter {
    Errand* errand = nullptr;
    uint64_t tag = 0;
    std::list<Asked>::iterator self;
    void on_result(const op::Result& result) override;
  };

  base::Status on_session_connecting(rpc::ClientSession& session) override;
  base::Status on_session_open(rpc::ClientSession& session) override;
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  void on_session_falls_back(rpc::ClientSession& session, const std::string& why) override;
  base::Status on_session_resized(rpc::ClientSession& session) override;

  base::Status watch_data(rpc::ClientSession& session);
  void on_control();
  void on_data();
  void on_tick();
  void pass();
  bool send_queued();
  bool send_first();
  void finish(base::Status status);
  void tell();

  events::EventLoop& loop_;
  ErrandOwner& owner_;
  events::Event control_, data_;  // of the session
  events::Event tick_;            // pending from the start to the end
  events::Event again_;           // pending while passes must go on without being woken
  events::Event over_;            // made active at the end: the owner is told from the loop
  std::deque<Queued> queued_;
  std::list<Asked> asked_;  // in the lanes
  enum class State : uint8_t { kOpening, kRunning, kOver };
  State state_ = State::kOpening;
  bool is_kept_ = false;
  base::Status status_ = base::Status::ok();
  rpc::ClientSession session_;
};

}  // namespace egret::pool
