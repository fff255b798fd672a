#include "rpc/opening.h"

#include <algorithm>
#include <string>
#include <vector>

namespace egret::rpc {

using base::Expected;
using base::Status;
using wire::FrameType;

namespace {

uint64_t features_of(const SessionOptions& asked, const transport::Limits& limits) {
  const bool is_fetched = !limits.fetch_is_local && !limits.results_are_pushed;
  return (asked.secret.is_set() ? wire::kAuthenticate : 0) | (limits.is_ordered ? wire::kOrderedMemory : 0) |
         (limits.offers_wake_timers ? wire::kWakeTimers : 0) | (limits.offers_lane_rings ? wire::kLaneRings : 0) |
         wire::kRights | wire::kFailover | wire::kWarm | wire::kComeBack | wire::kLongSlots |
         (is_fetched ? wire::kDeliver : 0) | (asked.is_embedded ? wire::kEmbedded : 0) |
         (asked.relayed_to != 0 ? wire::kRelayed : 0) |
         (asked.request_slot_size != 0 || asked.response_slot_size != 0 ? wire::kSlotSizes : 0);
}

}  // namespace

Status Opening::send_hello(const SessionOptions& options, uint32_t asked_back, transport::ClientEndpoint& endpoint) {
  asked_ = options;
  offered_ = features_of(asked_, endpoint.limits());
  is_heard_ = has_proved_ = is_granted_ = is_ready_ = false;
  come_back_ms_ = 0;
  wire::Hello hello{.features = offered_, .worker_id = asked_.worker_id, .window = asked_.window};
  hello.request_slot_size = asked_.request_slot_size;
  hello.response_slot_size = asked_.response_slot_size;
  hello.asked_back = asked_back;
  hello.member = asked_.relayed_to;
  if (asked_.secret.is_set()) hello.nonce = wire::fresh_nonce();
  const std::vector<std::byte> frame = encode(hello);
  transcript_.clear();
  transcript_.add(frame);
  return endpoint.send_frame(frame, false);
}

Expected<bool> Opening::on_frame(std::span<const std::byte> frame, transport::ClientEndpoint& endpoint) {
  FrameType type{};
  std::string error;
  if (!decode_prefix(frame, type, error)) return Status::error(error);
  is_heard_ = true;
  if (type == FrameType::kChallenge && asked_.secret.is_set() && !has_proved_ && !is_granted_) {
    if (Status answered = on_challenge(frame, endpoint); !answered) return answered;
    return false;
  }
  if (type == FrameType::kGrant && !is_granted_) {
    if (Status taken = on_grant(frame, endpoint); !taken) return taken;
    is_granted_ = true;
    return on_no_frame(endpoint);
  }
  if (wire::Refusal refusal; type == FrameType::kRefusal && decode(frame, refusal)) {
    come_back_ms_ = refusal.come_back_ms;
    if (come_back_ms_ > 0) return Status::error("asked to come back: " + refusal.reason);
    return Status::error("refused: " + refusal.reason);
  }
  is_heard_ = false;  // it is no backend: one that sends our own frames back, say
  return Status::error("an unexpected handshake frame: it is no egret-backend");
}

Expected<bool> Opening::on_no_frame(transport::ClientEndpoint& endpoint) {
  if (!is_granted_ || is_ready_ || !endpoint.is_mapped()) return false;
  if (Status sent = endpoint.send_frame(encode(wire::Ready{}), true); !sent) return sent;
  return is_ready_ = true;
}

Status Opening::on_challenge(std::span<const std::byte> frame, transport::ClientEndpoint& endpoint) {
  if (wire::Challenge challenge; !decode(frame, challenge)) return Status::error("a malformed challenge");
  transcript_.add(frame);
  has_proved_ = true;
  return endpoint.send_frame(encode(wire::ClientProof{transcript_.client_proof(asked_.secret)}), false);
}

// Why the backend's grant must not be trusted; null: it may be. Without a secret every backend is trusted.
const char* Opening::distrust_reason(std::span<const std::byte> frame) const {
  const bool claims_proof = (grant_.features & wire::kAuthenticate) != 0;
  if ((grant_.features & ~offered_) != 0) return "a grant with a feature that was not asked for";
  if (asked_.relayed_to != 0 && (grant_.features & wire::kRelayed) == 0)
    return "it is no proxy that relays to backends";
  if (!asked_.secret.is_set()) return nullptr;
  if (!has_proved_ || !claims_proof) {
    return "the backend does not prove that it holds our secret: set its secret_file, too, or check that it is ours";
  }
  if (!wire::is_equal(grant_.proof, transcript_.server_proof(asked_.secret, frame))) {
    return "the backend's proof is wrong: it does not hold our secret (compare both sides' secret_file)";
  }
  return nullptr;
}

// A backend that does not know of slot sizes grants its own.
bool Opening::is_larger_than_asked(const wire::RegionLayout& layout) const {
  if ((grant_.features & wire::kSlotSizes) == 0) return false;
  const auto exceeds = [](uint32_t granted, uint32_t asked) {
    return asked != 0 && granted > std::max(asked, wire::kMinSlotSize);
  };
  return exceeds(layout.request_slot_size, asked_.request_slot_size) ||
         exceeds(layout.response_slot_size, asked_.response_slot_size);
}

Status Opening::on_grant(std::span<const std::byte> frame, transport::ClientEndpoint& endpoint) {
  if (!decode(frame, grant_)) return Status::error("a malformed grant");
  if (const char* doubt = distrust_reason(frame)) return Status::error(doubt);
  const wire::RegionLayout& layout = grant_.layout;
  // A region that is too large would keep clients waiting while its memory is allocated and pinned.
  if (layout.window > std::max(asked_.window, wire::kMinWindow))
    return Status::error("a grant of more slots than were asked for");
  if (is_larger_than_asked(layout)) return Status::error("a grant of larger slots than were asked for");
  if (layout.bytes() > asked_.most_memory) {
    return Status::error("a grant of " + layout.to_string() +
                         ", more than session_memory allows: " + std::to_string(asked_.most_memory) + " bytes");
  }
  const transport::RegionShape shape{.lanes = layout.lanes,
                                     .request_bytes = layout.request_bytes(),
                                     .response_bytes = layout.response_bytes(),
                                     .reply_bytes = layout.response_slot_size,
                                     .has_wake_timers = (grant_.features & wire::kWakeTimers) != 0,
                                     .has_lane_rings = (grant_.features & wire::kLaneRings) != 0};
  return endpoint.map_region(shape);
}

}  // namespace egret::rpc
