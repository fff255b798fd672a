// The client's side of one handshake: what it asks for, what it believes of the answers, and what was granted.
//
//   send_hello() ─▶ on_frame(challenge) ─ proof ─▶ on_frame(grant) ─ trusted, of the agreed size, mapped, ready ─▶ granted
//                                                                    └ not mapped yet: on_no_frame() ─────────────────▲
//                       └ refusal, or anything that was not asked for ─▶ an error: the endpoint is of no use any more
//
// It owns no endpoint; whoever does connects, receives and closes. Thread: the worker's.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "rpc/session_options.h"
#include "transport/transport.h"
#include "wire/handshake.h"
#include "wire/proof.h"

namespace egret::rpc {

class Opening {
 public:
  // Begins a handshake, or another one. `options` as they are now are what the backend's frames answer.
  // `asked_back`: how often in a row the backend has asked to be tried again later.
  base::Status send_hello(const SessionOptions& options, uint32_t asked_back, transport::ClientEndpoint& endpoint);
  // A frame from the backend. True: the session is granted, its region is mapped, and the backend knows that we are
  // ready. An error: why there will be no session.
  base::Expected<bool> on_frame(std::span<const std::byte> frame, transport::ClientEndpoint& endpoint);
  // No frame has come: what was granted may be mapped by now. As on_frame().
  base::Expected<bool> on_no_frame(transport::ClientEndpoint& endpoint);

  // The backend has said something since send_hello().
  bool is_heard() const { return is_heard_; }
  // It has refused, and asks to be tried again after so long, as it says (any number); 0: it asks for nothing.
  uint32_t come_back_ms() const { return come_back_ms_; }
  const wire::Grant& grant() const { return grant_; }  // once granted

 private:
  base::Status on_challenge(std::span<const std::byte> frame, transport::ClientEndpoint& endpoint);
  base::Status on_grant(std::span<const std::byte> frame, transport::ClientEndpoint& endpoint);
  const char* distrust_reason(std::span<const std::byte> frame) const;
  bool is_larger_than_asked(const wire::RegionLayout& layout) const;

  SessionOptions asked_;
  uint64_t offered_ = 0;  // features
  bool is_heard_ = false;
  uint32_t come_back_ms_ = 0;
  wire::Transcript transcript_;  // where there is a secret
  bool has_proved_ = false;      // the challenge is answered
  bool is_granted_ = false;      // what comes then can only be a refusal
  bool is_ready_ = false;        // its region is mapped, and the backend knows
  wire::Grant grant_;
};

}  // namespace egret::rpc
