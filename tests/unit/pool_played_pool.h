// A pool whose backends the test plays: it sees each op that was sent to a member, by the member's name, and says what
// becomes of it.
//
//   pool.apply(members) ─▶ sessions, opened at once;   pool.serve(answer) ─▶ answer(name, op), … until all is answered
//
// One at a time: connect() has no context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool.h"
#include "rpc_played_backend.h"

namespace egret::pool {

// A pool of members at "shm:NAME".
struct PlayedPool final : rpc::SessionObserver {
  using Answer = std::function<op::Result(const std::string& name, const op::Op& op)>;

  explicit PlayedPool(const std::vector<std::string>& names, uint32_t window = 4, uint32_t slot = 1024)
      : layout{.lanes = 1, .window = window, .request_slot_size = slot, .response_slot_size = slot} {
    next_layout() = layout;
    apply(names);
  }
  void apply(const std::vector<std::string>& names) {
    std::vector<Member> members;
    for (const std::string& name : names) members.push_back({"shm:" + name, name});
    router.apply(std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                                    std::initializer_list<const Membership*>{&router.membership()}),
                 clock.now_ns());
    for (const auto& session : router.sessions()) {
      if (session->lanes().generation() == 0) open(*session);
    }
  }
  rpc::ClientSession& session(const std::string& name) {
    for (const auto& session : router.sessions()) {
      if (router.member_of(*session).member.name == name) return *session;
    }
    FAIL("no session with " << name);
    std::abort();
  }
  // The owner's name.
  const std::string& owner_of(std::string_view key) const {
    return router.membership().members()[router.membership().owner_of(key)].member.name;
  }
  // Sends what is appended, answers what has been sent, and hands out results and credit, until nothing more happens.
  // Members in `silent` say nothing.
  void serve(const Answer& answer) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const auto& session : router.sessions()) {
        const std::string name = router.member_of(*session).member.name;
        if (!session->is_open() || silent.contains(name)) continue;
        session->flush();
        for (const auto& write : std::exchange(endpoints().at(name)->writes, {})) {
          if (write.offset != layout.request_offset(0, write.first_word)) continue;
          goes_on = true;
          rpc::play(*endpoints().at(name), layout, 0, write.first_word,
                    [&](const op::Op& op) { return answer(name, op); });
        }
        session->begin_pass();
        goes_on |= session->fetch();
        goes_on |= session->credit().hand_out();
      }
    }
  }
  void lose(const std::string& name) {
    rpc::ClientSession& lost = session(name);
    endpoints().at(name)->peer_gone = true;
    lost.on_control_ready();
    REQUIRE(!lost.is_open());
    lost.credit().hand_out();
  }
  // After it was lost.
  void reopen(const std::string& name) {
    clock.advance_ns(rpc::SessionOptions().backoff_max_ns);
    session(name).tick();
    grant(session(name));
  }
  void use_up_credit(const std::string& name, rpc::Waiter& waiter) {
    op::Op get;
    get.code = op::OpCode::kGet;
    get.key = "filler";
    while (session(name).lanes()[0].append(get, &waiter)) session(name).flush();
  }

  base::ManualClock clock;
  const wire::RegionLayout layout;
  std::set<std::string> silent;
  uint64_t features = wire::kWarm;  // that members grant
  Pool router{[this](const Membership::Entry& entry) { return make(entry); }};

 private:
  static wire::RegionLayout& next_layout() {
    static wire::RegionLayout layout;
    return layout;
  }
  static std::map<std::string, rpc::FakeClientEndpoint*>& endpoints() {
    static std::map<std::string, rpc::FakeClientEndpoint*> connected;
    return connected;
  }
  static base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                            const transport::ConnectOptions&) {
    auto made = std::make_unique<rpc::FakeClientEndpoint>(next_layout(), true);
    made->completes_reads = true;
    endpoints()[address.substr(4)] = made.get();
    return std::unique_ptr<transport::ClientEndpoint>(std::move(made));
  }
  std::unique_ptr<rpc::ClientSession> make(const Membership::Entry& entry) {
    rpc::SessionOptions options;
    options.address = entry.member.address;
    return std::make_unique<rpc::ClientSession>(options, clock, *this, connect, entry.stats->sessions[0]);
  }
  void open(rpc::ClientSession& session) {
    session.start();
    grant(session);
  }
  void grant(rpc::ClientSession& session) {
    const std::string& name = router.member_of(session).member.name;
    endpoints().at(name)->frames_in.push_back(encode(wire::Grant{.features = features,
                                                                 .session_id = 1,
                                                                 .nonce = rpc::kNonce,
                                                                 .epoch = 1,
                                                                 .hash_seed = static_cast<uint64_t>(name[0]),
                                                                 .item_size_max = 1 << 20,
                                                                 .layout = layout}));
    session.on_control_ready();
    REQUIRE(session.is_open());
    session.begin_pass();
  }
  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession&) override { return base::Status::ok(); }
  void on_session_lost(rpc::ClientSession&, const std::string&, bool) override {}
};

// A key that `before` owns as long as it is alone, and `after` when both are members.
inline std::string key_that_moves(PlayedPool& pool, const std::string& after) {
  for (int i = 0;; ++i) {
    if (pool.owner_of("key" + std::to_string(i)) == after) return "key" + std::to_string(i);
  }
}

}  // namespace egret::pool
