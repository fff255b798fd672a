// Members of a pool with a gutter, on an event loop: owners that are purged, and backends that stand in for them and
// remember what was changed. The test plays each of them behind an address of its own.
//
//   watch, looks ─ errands ─▶ connect_to_gutter(address) ─▶ PlayedStore: what it was asked, what it has changed
//
// One set at a time: connect() has no context.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "op/records.h"
#include "pool/gutter/stand_in.h"
#include "pool_played_member.h"

namespace egret::pool {

// A backend: as an owner it notes what is deleted on it, as one of the gutter it has a log of changed keys in each of its
// partitions, for whatever owner.
struct PlayedStore {
  static constexpr uint64_t kFirst = 100;  // the cursor of a log's first key

  PlayedStore() {
    member.features = wire::kWarm | wire::kFailover;
    member.answer = [this](const op::Op& op) { return answer(op); };
  }
  op::Result answer(const op::Op& op) {
    const uint32_t lane = member.got.back().first;
    if (refusal != op::ResultCode::kOk && op.code != op::OpCode::kPing) return rpc::result_of(refusal);
    switch (op.code) {
      case op::OpCode::kDelete:
        deleted.emplace(op.key);
        return rpc::result_of(op::ResultCode::kDeleted);
      case op::OpCode::kFlush:
        ++flushes;
        return rpc::result_of(op::ResultCode::kOk);
      case op::OpCode::kIterate:
        return changes(op, lane);
      default:
        return rpc::result_of(op::ResultCode::kOk);
    }
  }
  op::Result changes(const op::Op& op, uint32_t lane) {
    const std::vector<std::string>& log = logs[lane];
    op::Result page = rpc::result_of(op::ResultCode::kOk);
    page.version = kFirst + log.size();
    tags.insert(op.owner);
    if (op.version == op::kEnterFailover) {
      ++entered;
      return page;
    }
    if (op.size_class == op::kPurgedBefore) {
      marks.emplace_back(lane, op.version);
      return page;
    }
    ++reads;
    page.number = has_forgotten ? 1 : 0;
    records.clear();
    const bool is_place = op.version >= kFirst && op.version != op::kChangesFromNow;
    for (uint64_t at = is_place ? op.version - kFirst : 0; op.version != op::kChangesFromNow && at < log.size(); ++at) {
      op::RecordHead head{};
      head.cursor = kFirst + at + 1;
      op::append_record(records, head, log[at]);
    }
    page.value = records;
    page.total_length = static_cast<uint32_t>(records.size());
    return page;
  }

  PlayedMember member;
  op::ResultCode refusal = op::ResultCode::kOk;              // of everything but pings
  std::array<std::vector<std::string>, kLayout.lanes> logs;  // keys that were changed, by partition
  bool has_forgotten = false;                                // not all that were changed are in the logs
  std::set<std::string> deleted;                             // as an owner
  int flushes = 0;                                           // of partitions
  int entered = 0, reads = 0;                                // ops, as one of the gutter
  std::vector<std::pair<uint32_t, uint64_t>> marks;          // by partition: purged up to that cursor
  std::set<uint64_t> tags;

 private:
  std::string records;
};

// Three owners, m0 to m2, and a gutter of two, m3 and m4.
using PlayedStores = std::array<PlayedStore, 5>;
inline PlayedStores* stores_played = nullptr;

inline base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_to_gutter(const std::string& address,
                                                                                    const transport::ConnectOptions&) {
  return connect_to((*stores_played)[static_cast<size_t>(address.back() - '0')].member);
}

inline std::vector<Member> members_of(const std::vector<int>& numbers) {
  std::vector<Member> members;
  for (const int number : numbers) members.push_back({"shm:" + std::to_string(number), "m" + std::to_string(number)});
  return members;
}

inline std::shared_ptr<const Membership> pool_with_gutter(const std::vector<int>& owners,
                                                          const std::vector<int>& gutter,
                                                          const Membership& before = {}) {
  return std::make_shared<const Membership>(PlacementRule::kKetama, members_of(owners), 1,
                                            std::initializer_list<const Membership*>{&before}, members_of(gutter));
}

}  // namespace egret::pool
