// A member of a pool on an event loop, which the test plays: it answers, or fails in one of several ways.
//
// connect() has no context: connect_to_played() is for one at a time; who plays several chooses by the address.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "rpc_played_backend.h"

namespace egret::pool {

using rpc::FakeClientEndpoint;

inline constexpr wire::RegionLayout kLayout{
    .lanes = 3, .window = 2, .request_slot_size = 1024, .response_slot_size = 1024};

// The member: which of these ways it behaves.
enum class Behaviour : uint8_t { kAnswers, kRefusesConnection, kSaysNothing, kExecutesNothing, kDiesAtFirstOp };

struct PlayedMember {
  Behaviour behaviour = Behaviour::kAnswers;
  rpc::PlayedAnswer answer;
  base::UniqueFd control{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  base::UniqueFd data{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  rpc::SessionOptions asked;
  uint64_t features = wire::kWarm;               // that it grants
  uint64_t epoch = 1;                            // of its process
  std::vector<std::pair<uint32_t, op::Op>> got;  // by lane; the ops' views have gone
  FakeClientEndpoint* endpoint = nullptr;        // of the session that was opened last

  void on_flush(FakeClientEndpoint& its) {
    for (const auto& write : std::exchange(its.writes, {})) {
      for (uint32_t lane = 0; lane < kLayout.lanes; ++lane) {
        if (write.offset != kLayout.request_offset(lane, write.first_word)) continue;
        if (behaviour == Behaviour::kDiesAtFirstOp) {
          its.events.push_back({.kind = transport::Event::Kind::kClosed});
        } else if (behaviour == Behaviour::kAnswers) {
          rpc::play(its, kLayout, lane, write.first_word, [&](const op::Op& op) {
            got.emplace_back(lane, op);
            return answer ? answer(op) : rpc::result_of(op::ResultCode::kOk);
          });
        }
      }
    }
  }
};
inline PlayedMember* played = nullptr;  // of the test that runs

inline base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_to(PlayedMember& member) {
  if (member.behaviour == Behaviour::kRefusesConnection) return base::Status::error("connection refused");
  auto endpoint = std::make_unique<FakeClientEndpoint>(kLayout, true);
  member.endpoint = endpoint.get();
  endpoint->control = member.control.get();
  endpoint->data = member.data.get();
  endpoint->completes_reads = true;
  endpoint->on_flush = [&member, its = endpoint.get()] { member.on_flush(*its); };
  if (member.behaviour != Behaviour::kSaysNothing) {
    endpoint->frames_in.push_back(encode(wire::Grant{.features = member.features,
                                                     .session_id = 1,
                                                     .nonce = rpc::kNonce,
                                                     .epoch = member.epoch,
                                                     .hash_seed = 9,
                                                     .item_size_max = 1,
                                                     .layout = kLayout}));
    const uint64_t one = 1;
    REQUIRE(::write(member.control.get(), &one, sizeof one) == sizeof one);
  }
  return std::unique_ptr<transport::ClientEndpoint>(std::move(endpoint));
}

inline base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_to_played(const std::string&,
                                                                                    const transport::ConnectOptions&) {
  return connect_to(*played);
}

}  // namespace egret::pool
