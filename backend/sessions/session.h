// A connection, and the session that becomes of it. Thread: the control thread's, apart from what a set-up thread has
// meanwhile (`is_in_setup`) and what the partitions have of an open one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "access/admission.h"
#include "backend/config.h"
#include "backend/mailbox.h"
#include "events/event.h"
#include "transport/transport.h"
#include "wire/handshake.h"

namespace egret::backend {

class Sessions;

//   [kPreparing]   a set-up thread makes its queue pair
//   kSilent        its hello is awaited
//   [kChallenged]  its proof of the secret is awaited
//   kWaiting       until the worker's older session is gone, and all queue pairs have joined
//   kMaking        a set-up thread makes its memory
//   kOpen          the partitions serve it
//   kClosing       until all partitions have let go, and its memory is freed
//   kRefused       instead of kOpen: until the peer has had time to read why
struct Session {
  enum class State : uint8_t { kPreparing, kSilent, kChallenged, kWaiting, kMaking, kOpen, kRefused, kClosing };
  Sessions* sessions = nullptr;
  uint64_t id = 0;
  State state = State::kSilent;
  std::unique_ptr<transport::ServerEndpoint> endpoint;
  events::Event readable;  // after the endpoint: it is destroyed before the endpoint closes its descriptor
  events::Event read_on;   // pending: the endpoint is not read from until then
  events::Event refused;   // when the refusal has had its time
  bool is_ready = false;   // its ready frame has come
  // A set-up thread has the endpoint: this thread leaves it alone. What was to end the session meanwhile, ends it then.
  bool is_in_setup = false;
  bool takes_long = false;  // to be destroyed: there is something that was made by a set-up thread
  std::string ends_after_setup{};
  wire::Hello hello;
  wire::Grant granted;          // from kMaking on
  wire::Transcript transcript;  // of the handshake, where there is a secret
  NamedSecret secret;           // that the peer has proved to hold
  uint32_t detaching = 0;       // partitions that have not acknowledged yet
  uint64_t memory_bytes = 0;    // of its region
  uint32_t user = 0;            // LaneBinding::user, once it has a region
  uint64_t accepted_ns = 0;
  access::StepCost cost;  // since it was accepted or, once that is told, since then
  bool survived_sweep = false;
  std::unique_ptr<UnderWay> under_way;  // once it is open

  // The peer has not proved who it is: it takes no place in any quota, and what its hello says is not acted on.
  bool is_silent() const {
    return state == State::kPreparing || state == State::kSilent || state == State::kChallenged ||
           state == State::kRefused;
  }
  bool is_incomplete() const { return state == State::kWaiting && !endpoint->is_whole(); }
  bool reads_frames() const { return !is_in_setup && state != State::kRefused && state != State::kClosing; }

  void on_readable();
  void on_read_on();
  void on_refusal_over();
};

}  // namespace egret::backend
