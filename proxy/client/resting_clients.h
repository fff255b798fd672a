// The clients of one worker that are at rest: no request is under way, and none has come for a second or two. What is left
// of one is its record and its descriptor, in an epoll instance of its own that the worker's loop watches: no Connection
// (1.4 KB) and no event.
//
//   Connection ─ begin() ─▶ at rest ─ readable, or its end ─▶ on_ready ─ end() ─▶ Connection
//
// It has a timer, too, which tells when to look for clients that may come to rest. It is no event of the loop: with a timer
// pending, libevent reads the clock in each of its rounds, which costs a lone request 2 % of its instructions.
//
// Thread: the worker's.
#pragma once

#include <cstddef>
#include <functional>

#include "base/unique_fd.h"
#include "events/event.h"
#include "proxy/client/connection_table.h"

namespace egret::proxy {

class RestingClients {
 public:
  // Throws std::system_error if the system has no descriptors left.
  RestingClients(events::EventLoop& loop, std::function<void(ConnectionRecord&)> on_ready,
                 std::function<void()> on_time);

  // From now on the client's descriptor is watched here; its connection goes next. False: the system cannot watch one more.
  bool begin(ConnectionRecord& record);
  // The descriptor is the caller's again.
  base::UniqueFd end(ConnectionRecord& record);
  size_t count() const { return count_; }

  // Calls on_time once, after this time; replaces an earlier one.
  void call_after(uint64_t ns);
  bool is_call_pending() const { return is_call_pending_; }

 private:
  void on_readable();

  const std::function<void(ConnectionRecord&)> on_ready_;
  const std::function<void()> on_time_;
  base::UniqueFd epoll_;
  base::UniqueFd timer_;  // in epoll_, too
  bool is_call_pending_ = false;
  events::Event readable_;
  size_t count_ = 0;
};

}  // namespace egret::proxy
