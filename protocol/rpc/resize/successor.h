// A second session with the same backend process, of another size or by another transport, that is to take an open
// session's place.
//
//   begin() ─▶ look() … kOpening ─ granted ─▶ look() … kEmptying ⇄ kResting ─ the lanes are empty ─▶ taken over by the session
//                  └ refused, lost, another backend, no answer, never empty: an error, and why ◀───┘
//
// The first session serves on until its lanes are empty: they are emptied for kEmptyTicks, then clients go on for
// kRestTicks. So who waits for a slot waits little, however long others hold theirs. A value in parts takes longer than
// kEmptyTicks, and some clients always have one under way. So before the lanes are emptied, the session waits until no value
// in parts is under way. Each attempt waits longer. Meanwhile no further such value begins; all other ops go on.
//
// Owns the second session's endpoint and handshake until they are taken over. Its control channel is not watched: it is
// looked at in the session's ticks. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "rpc/opening.h"
#include "rpc/session_options.h"
#include "transport/transport.h"
#include "wire/handshake.h"

namespace egret::rpc {

class Successor {
 public:
  using Connect = base::Expected<std::unique_ptr<transport::ClientEndpoint>> (*)(
      const std::string& address, const transport::ConnectOptions& options);
  enum class State : uint8_t { kOpening, kEmptying, kResting };
  // What it is to be better at: more slots, fewer of them, the preferred transport.
  enum class Aim : uint8_t { kMore, kFewer, kPreferred };

  ~Successor();
  // `asked`: of the session that it is to be. `now`: what is granted to the one whose place it will take.
  base::Status begin(const SessionOptions& asked, const wire::Grant& now, Aim aim, Connect connect, uint64_t now_ns);
  // Once a tick. `has_uploads`: values in parts are under way that should be waited for, or a pin. An error: it is of no use any more.
  base::Expected<State> look(uint64_t now_ns, bool has_uploads);
  Aim aim() const { return aim_; }
  uint64_t worker_id() const { return worker_id_; }
  // The session takes these over, and leaves its own here, which end with this object.
  void swap(std::unique_ptr<transport::ClientEndpoint>& endpoint, Opening& opening);

 private:
  static constexpr uint32_t kEmptyTicks = 2;
  static constexpr uint32_t kRestTicks = 10;
  static constexpr uint32_t kMostTicks = 600;
  static constexpr uint32_t kMostWaitTicks = 100;  // for uploads, at a time

  base::Expected<bool> hear(uint64_t now_ns);
  base::Status compare() const;
  State phase(bool has_uploads);

  std::unique_ptr<transport::ClientEndpoint> endpoint_;
  Opening opening_;
  wire::Grant now_;
  Aim aim_ = Aim::kMore;
  bool is_granted_ = false;
  uint64_t worker_id_ = 0;
  uint64_t deadline_ns_ = 0;  // of the handshake
  uint32_t ticks_ = 0;        // since it was granted
  uint32_t at_ = 0;           // of them: since the last emptying began, without those that waited for uploads
  uint32_t may_wait_ = 2;     // for uploads, in this emptying
  uint32_t waited_ = 0;
};

}  // namespace egret::rpc
