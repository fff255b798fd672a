// The values that arrive in parts, as the simulation's handler sees them: each upload's parts in order and whole, its commit
// behind the last, or its end with its session.
//
//   part … part ─▶ commit ─▶ the set is executed        │ abort, or the lane is dropped ─▶ forgotten
//
// An upload is known by the session and lane that it came by and its id there. Single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "op/op.h"

namespace egret::sim {

class ModelUploads {
 public:
  // The upload or commit of a value that should be `whole`, which came by a lane of a session. Empty, or what is wrong.
  std::string take_part(const op::Op& op, uint64_t session_id, uint32_t lane, std::string_view whole);
  std::string take_commit(const op::Op& op, uint64_t session_id, uint32_t lane, std::string_view whole);
  void abort(const op::Op& op, uint64_t session_id, uint32_t lane);
  void drop_lane(uint64_t session_id, uint32_t lane);

  size_t open() const { return open_.size(); }
  uint64_t committed() const { return committed_; }
  uint64_t parts() const { return parts_; }

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint32_t>;  // session, lane, id
  struct Upload {
    std::string key;
    size_t bytes = 0;  // that have come
  };
  std::map<Key, Upload> open_;
  uint64_t committed_ = 0, parts_ = 0;
};

}  // namespace egret::sim
