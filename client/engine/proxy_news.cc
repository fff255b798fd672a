#include "client/engine/proxy_news.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <unistd.h>

#include "pool/member.h"
#include "transport/address.h"
#include "wire/handshake.h"

namespace egret::client {

using base::Status;
using Heard = ProxyNews::Heard;

namespace {

// A proxy that does not let us in closes the connection without a word.
std::string not_heard(const std::string& what) {
  return "the proxy ended the connection without a word (" + what +
         "): it lets in root, its own user, and who is in its " + "slots_uids or slots_gids; this is uid " +
         std::to_string(::geteuid());
}

}  // namespace

ProxyNews::ProxyNews(std::vector<std::string> addresses, const rpc::SessionOptions& options, const base::Clock& clock,
                     rpc::ClientSession::Connect connect)
    : addresses_(std::move(addresses)),
      options_(options),
      clock_(clock),
      connect_(connect),
      pause_ns_(options.backoff_min_ns) {}

bool ProxyNews::begin() {
  const uint64_t now_ns = clock_.now_ns();
  if (endpoint_ != nullptr || now_ns < again_ns_) return false;
  again_ns_ = now_ns + pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, options_.backoff_max_ns);
  for (const std::string& address : addresses_) {
    auto connected = connect_(address, options_.connect);
    if (!connected) {
      why_ = "no egret-proxy: " + connected.message() +
             "; the option proxy names an address that a proxy on this host listens at, with slots";
      continue;
    }
    if (Status asked = connected.value()->send_frame(encode(wire::Ask{}), false); !asked) {
      why_ = not_heard(asked.message());
      continue;
    }
    endpoint_ = std::move(connected.value());
    address_ = address;
    deadline_ns_ = now_ns + options_.connect_timeout_ns;
    is_coming_ = has_spoken_ = false;
    return true;
  }
  return false;
}

Heard ProxyNews::hear() {
  while (endpoint_ != nullptr) {
    std::array<std::byte, wire::kMaxPoolFrame> frame{};
    size_t length = 0;
    if (Status received = endpoint_->receive_frame(frame, length); !received) {
      return fail(has_spoken_ ? "the proxy is gone: " + received.message() : not_heard(received.message()));
    }
    if (length == 0) break;
    has_spoken_ = true;
    if (const Heard heard = take(std::span(frame).first(length)); heard != Heard::kNothing) return heard;
  }
  return Heard::kNothing;
}

void ProxyNews::end(bool is_ours) {
  if (endpoint_ == nullptr) return;
  if (is_ours) {
    endpoint_->close();
    endpoint_.reset();
  } else {
    [[maybe_unused]] const transport::ClientEndpoint* const left_alone = endpoint_.release();
  }
}

Heard ProxyNews::fail(std::string why) {
  why_ = std::move(why);
  return Heard::kEnd;
}

Heard ProxyNews::take(std::span<const std::byte> frame) {
  wire::FrameType type{};
  std::string error;
  if (!decode_prefix(frame, type, error, wire::kMaxPoolFrame)) return fail("the proxy: " + error);
  if (type == wire::FrameType::kRefusal) {
    wire::Refusal refusal;
    return fail("refused by the proxy: " + (decode(frame, refusal) ? refusal.reason : std::string("no reason")));
  }
  wire::PoolHead head;
  if (type == wire::FrameType::kPool && decode(frame, head)) return take_head(head);
  wire::MemberFrame member;
  if (type == wire::FrameType::kMember && decode(frame, member)) return take_member(std::move(member));
  wire::MemberStateFrame state;
  if (type == wire::FrameType::kMemberState && decode(frame, state)) return take_state(state);
  return fail("the proxy sent what is no news of a pool");
}

Heard ProxyNews::take_head(const wire::PoolHead& head) {
  if (head.version == 0 || head.members > wire::kMaxPoolMembers) return fail("the proxy told of an impossible pool");
  coming_ = {.head = head, .members = {}};
  is_coming_ = true;
  return head.members == 0 ? adopt() : Heard::kNothing;
}

Heard ProxyNews::take_member(wire::MemberFrame member) {
  if (!is_coming_ || member.version != coming_.head.version || member.index != coming_.members.size() ||
      !transport::check_address(member.address)) {
    return fail("the proxy told of an impossible member");
  }
  coming_.members.push_back(std::move(member));
  return coming_.members.size() == coming_.head.members ? adopt() : Heard::kNothing;
}

// All members have come: the pool is in force, if it can be one.
Heard ProxyNews::adopt() {
  is_coming_ = false;
  std::vector<pool::Member> members;
  for (const wire::MemberFrame& each : coming_.members) members.push_back({each.address, each.name, each.weight});
  if (!members.empty()) {
    if (Status good = pool::check_members(members); !good) return fail("the proxy's pool: " + good.message());
  }
  pool_ = std::exchange(coming_, {});
  pause_ns_ = options_.backoff_min_ns;
  why_.clear();
  return Heard::kPool;
}

Heard ProxyNews::take_state(const wire::MemberStateFrame& state) {
  if (is_coming_ || state.version != pool_.head.version) return Heard::kNothing;
  if (state.index >= pool_.members.size()) return fail("the proxy told of a member that there is not");
  pool_.members[state.index].state = state.state;
  changed_member_ = state.index;
  return Heard::kState;
}

}  // namespace egret::client
