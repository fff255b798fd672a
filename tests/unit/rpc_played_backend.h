// A session whose backend is the test: it sees every op that the client sent, and says what becomes of each.
//
//   session.lanes().append … ─ serve(answer) ─▶ flush ─▶ answer(op), … ─▶ fetch, credit handed out
//
// One at a time: connect() has no context.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "rpc/client_session.h"
#include "rpc_fakes.h"
#include "wire/head.h"

namespace egret::rpc {

// What a backend answers to an op.
using PlayedAnswer = std::function<op::Result(const op::Op&)>;

// Answers message `seq` of a lane, which the client has sent.
inline void play(FakeClientEndpoint& endpoint, const wire::RegionLayout& layout, uint32_t lane, uint64_t seq,
                 const PlayedAnswer& answer) {
  const std::byte* const asked = endpoint.requests.data() + layout.request_offset(lane, seq);
  wire::RequestHeader header;
  std::memcpy(&header, asked, sizeof header);
  std::vector<op::Op> ops(header.op_count);
  REQUIRE(wire::decode_ops(asked + sizeof header, header.length, ops) == wire::DecodeError::kNone);
  std::byte* const slot = endpoint.responses.data() + layout.response_offset(lane, seq);
  std::byte* end = slot + sizeof(wire::ResponseHeader);
  for (size_t i = 0; i < ops.size(); ++i) {
    size_t kept_free = 0;
    for (const op::Op& later : std::span(ops).subspan(i + 1)) kept_free += wire::min_result_size(later);
    const size_t room = layout.response_slot_size - static_cast<size_t>(end - slot) - kept_free;
    end = wire::encode_result(end, room, ops[i], answer(ops[i]));
  }
  const auto length = static_cast<uint32_t>(end - slot - ptrdiff_t{sizeof(wire::ResponseHeader)});
  wire::write_response_head(slot, wire::Seal{.nonce = kNonce}, seq, length, header.op_count, 0);
  wire::FieldWriter(slot).put(seq);
}

class PlayedBackend final : private SessionObserver {
 public:
  using Answer = PlayedAnswer;

  explicit PlayedBackend(uint32_t item_size_max, const wire::RegionLayout& shape = {.lanes = 1,
                                                                                    .window = 2,
                                                                                    .request_slot_size = 1024,
                                                                                    .response_slot_size = 1024})
      : layout(shape), session(options(), clock, *this, connect) {
    next_layout() = layout;
    session.start();
    endpoint->completes_reads = true;
    endpoint->frames_in.push_back(encode(wire::Grant{.session_id = 1,
                                                     .nonce = kNonce,
                                                     .epoch = 1,
                                                     .hash_seed = 3,
                                                     .item_size_max = item_size_max,
                                                     .layout = layout}));
    session.on_control_ready();
    REQUIRE(session.is_open());
    session.begin_pass();
  }

  // Sends what is appended, answers all that has been sent, and hands out results and credit.
  void serve(const Answer& answer) {
    session.flush();
    for (const auto& write : std::exchange(endpoint->writes, {})) {
      for (uint32_t lane = 0; lane < layout.lanes; ++lane) {
        if (write.offset == layout.request_offset(lane, write.first_word))
          play(*endpoint, layout, lane, write.first_word, answer);
      }
    }
    session.begin_pass();
    session.fetch();
    session.credit().hand_out();
  }
  // Everything in flight is lost, and those who waited for credit are told.
  void lose() {
    endpoint->peer_gone = true;
    session.on_control_ready();
    REQUIRE(!session.is_open());
    session.credit().hand_out();
  }
  void pass_time(uint64_t ns) {
    for (uint64_t step = 0; ns > 0; ns -= step) {
      step = std::min(ns, ClientSession::kTickNs);
      clock.advance_ns(step);
      session.tick();
    }
  }
  // Uses up the window of lane 0 with gets that `waiter` is told of.
  void use_up_credit(Waiter& waiter) {
    while (session.lanes()[0].append(get_of("filler"), &waiter)) session.flush();
  }

  base::ManualClock clock;
  const wire::RegionLayout layout;
  FakeClientEndpoint* endpoint = nullptr;
  ClientSession session;

 private:
  static SessionOptions options() {
    SessionOptions options;
    options.address = "played";
    options.op_timeout_ns = 3'600'000'000'000;
    return options;
  }
  static wire::RegionLayout& next_layout() {
    static wire::RegionLayout layout;
    return layout;
  }
  static FakeClientEndpoint*& last_connected() {
    static FakeClientEndpoint* made = nullptr;
    return made;
  }
  static base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string&,
                                                                            const transport::ConnectOptions&) {
    auto made = std::make_unique<FakeClientEndpoint>(next_layout(), true);
    last_connected() = made.get();
    return std::unique_ptr<transport::ClientEndpoint>(std::move(made));
  }
  base::Status on_session_connecting(ClientSession&) override {
    endpoint = last_connected();
    return base::Status::ok();
  }
  base::Status on_session_open(ClientSession&) override { return base::Status::ok(); }
  void on_session_lost(ClientSession&, const std::string&, bool) override {}
};

inline op::Result result_of(op::ResultCode code) {
  op::Result result;
  result.code = code;
  return result;
}

}  // namespace egret::rpc
