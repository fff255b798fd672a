// A pointer to a session that is kept beyond a call. A session object whose pool does not need it any more is destroyed
// when nobody holds it; it may be lost, or open anew, as long as it is held.
//
// Move and copy; empty by default. Not atomic. Thread: the worker's.
#pragma once

#include <utility>

#include "rpc/client_session.h"

namespace egret::rpc {

class SessionRef {
 public:
  SessionRef() = default;
  explicit SessionRef(ClientSession& session) : session_(&session) { ++session.holders_; }
  SessionRef(const SessionRef& other) : session_(other.session_) {
    if (session_ != nullptr) ++session_->holders_;
  }
  SessionRef(SessionRef&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  SessionRef& operator=(SessionRef other) noexcept {
    std::swap(session_, other.session_);
    return *this;
  }
  ~SessionRef() { reset(); }

  void reset() {
    if (session_ != nullptr) --std::exchange(session_, nullptr)->holders_;
  }
  explicit operator bool() const { return session_ != nullptr; }
  ClientSession& operator*() const { return *session_; }
  ClientSession* operator->() const { return session_; }
  ClientSession* get() const { return session_; }

  static bool is_held(const ClientSession& session) { return session.holders_ > 0; }

 private:
  ClientSession* session_ = nullptr;
};

// Of whoever passes others' ops on by the session (relay/), or may ask the member for values later (pool/warm): keeps the
// object, and the session with a member that left. Unlike a SessionRef it does not mean that something is under way, for
// which a member that returns would have to wait.
class SessionAnchor {
 public:
  explicit SessionAnchor(ClientSession& session) : session_(session) { ++session_.anchors_; }
  ~SessionAnchor() { --session_.anchors_; }
  SessionAnchor(const SessionAnchor&) = delete;
  SessionAnchor& operator=(const SessionAnchor&) = delete;

  ClientSession& operator*() const { return session_; }
  ClientSession* operator->() const { return &session_; }

  static bool is_anchored(const ClientSession& session) { return session.anchors_ > 0; }

 private:
  ClientSession& session_;
};

}  // namespace egret::rpc
