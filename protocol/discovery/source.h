// Where the members of a pool come from: a file that is watched, a name that is resolved again and again.
//
//   file, name service ─▶ Source ─ on_members() ─▶ whoever builds the pool's next Membership
//
// Thread: the control thread's, whose event loop the sources use. Errors: a source that learns nothing, or nothing
// usable, keeps the members that it has, and says why in problem().
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "pool/member.h"

namespace egret::discovery {

class Source;

class SourceObserver {
 public:
  // members() are others than before. Not called from within a constructor or start().
  virtual void on_members(Source& source) = 0;
  // problem() has changed: it has come, is another, or has gone.
  virtual void on_problem(Source& source) = 0;

 protected:
  ~SourceObserver() = default;
};

class Source {
 public:
  virtual ~Source() = default;
  // The last that were good, in the source's own stable order. Empty: none were learned yet.
  virtual std::span<const pool::Member> members() const = 0;
  // For people: "file /etc/egret/backends", "srv+rdma:_egret._tcp.pool.svc.cluster.local".
  virtual std::string name() const = 0;
  // What is wrong now; empty: nothing.
  virtual const std::string& problem() const = 0;
  // When the source last learned all its members, the same or others; nothing: never, or the source does not say.
  virtual std::optional<std::chrono::system_clock::time_point> learned_at() const { return {}; }
};

}  // namespace egret::discovery
