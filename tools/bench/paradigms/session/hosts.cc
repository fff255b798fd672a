#include "bench_paradigms/session/hosts.h"

#include "bench/monotonic.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

constexpr uint64_t kSignOfLifeNs = bench::kNsPerSecond;
constexpr uint64_t kSilenceNs = 60 * bench::kNsPerSecond;  // a host that loads, or was stopped for a while, is not gone

}  // namespace

Neighbour::Neighbour(std::unique_ptr<Channel> channel)
    : channel_(std::move(channel)), sent_ns_(bench::monotonic_ns()), heard_ns_(sent_ns_) {}

Status Neighbour::send(FrameType type, std::string_view body) {
  sent_ns_ = bench::monotonic_ns();
  return channel_->send(type, body);
}

Expected<std::optional<Frame>> Neighbour::poll() {
  const uint64_t now = bench::monotonic_ns();
  for (;;) {
    auto frame = channel_->poll();
    if (!frame) return frame;
    if (!frame.value()) break;
    heard_ns_ = now;
    if (frame.value()->type != FrameType::kAlive) return frame;
  }
  if (now > heard_ns_ + kSilenceNs) return Status::error("the other side does not answer");
  if (now > sent_ns_ + kSignOfLifeNs) {
    if (Status sent = send(FrameType::kAlive, {}); !sent) return sent;
  }
  return std::optional<Frame>();
}

Expected<Frame> wait_for(Neighbour& from, FrameType type, double patience_s, const std::atomic<bool>* stop) {
  const uint64_t deadline = bench::monotonic_ns() + bench::seconds_to_ns(patience_s);
  for (;;) {
    auto frame = from.poll();
    if (!frame) return frame.status();
    if (frame.value()) {
      Frame& found = *frame.value();
      if (found.type == FrameType::kRefused) return Status::error(found.body);
      if (found.type == type) return std::move(found);
      return Status::error("the other side sends something else than what was asked for");
    }
    if (stop->load()) return Status::error("interrupted");
    if (bench::monotonic_ns() > deadline) return Status::error("the other side does not answer");
    bench_verbs::pause_briefly();
  }
}

std::vector<NodeId> nodes_of(const Plan& plan, uint32_t host, uint32_t connecting_hosts) {
  std::vector<NodeId> nodes;
  if (host == 0) {
    for (NodeId server = 0; server < plan.servers; ++server) nodes.push_back(server);
    return nodes;
  }
  for (uint32_t client = host - 1; client < plan.clients; client += connecting_hosts) {
    nodes.push_back(plan.servers + client);
  }
  return nodes;
}

Status check_prepared(const std::vector<Brought>& brought, const Plan& plan) {
  bool is_good = brought.size() == plan.nodes();
  for (NodeId node = 0; is_good && node < plan.nodes(); ++node) {
    const Brought& each = brought[node];
    is_good = each.node == node && each.notices.size() == plan.nodes() && each.address.node == node;
  }
  return is_good ? Status::ok() : Status::error("the other side tells of other nodes than there are");
}

}  // namespace egret::bench_paradigms
