#include "transport/verbs/connector.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace egret::transport::verbs {

using base::Status;

namespace {

constexpr uint8_t kRetries = 6;     // 7 means without end to some devices, Soft-RoCE among them
constexpr uint8_t kRnrRetries = 7;  // without end: the backend's thread is only slow

Status cm_error(const std::string& address, const rdma_cm_event& event) {
  const std::string what = "cannot connect to rdma:" + address + ": ";
  switch (event.event) {
    case RDMA_CM_EVENT_REJECTED:
      return Status::error(what + "rejected (is egret-backend listening there?)");
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return Status::error(what + "no RDMA device on this host leads there");
    case RDMA_CM_EVENT_UNREACHABLE:
      return Status::error(what + "unreachable");
    default:
      return Status::error(what + ::rdma_event_str(event.event));
  }
}

}  // namespace

Connector::Connector(std::string address, const ConnectOptions& options, std::shared_ptr<SharedQueues> queues,
                     std::shared_ptr<Inbox> inbox, std::shared_ptr<const device::Notifier> told)
    : address_(std::move(address)),
      fabric_(options.fabric),
      came_back_(options.came_back),
      lanes_(options.lanes),
      window_(std::min(options.window, kMostWindow)),
      wanted_pairs_(std::clamp(options.queue_pairs, 1u, kMaxQueuePairs)),
      queues_(queues),
      told_(told),
      parts_(std::move(queues), std::move(inbox), std::move(told)) {}

Connector::News Connector::take_news() {
  const std::scoped_lock held(mutex_);
  News now = std::exchange(news_, News());
  news_.ended = now.ended;  // it stays
  return now;
}

// What is done has failed, or there is news.
void Connector::tell(const Status& done) {
  if (!done) is_over_ = true;
  {
    const std::scoped_lock held(mutex_);
    if (!done && news_.ended) news_.ended = done;
  }
  told_->notify();
}

// --- connecting

void Connector::begin(const std::shared_ptr<Connector>& self, AddressInfo resolved) {
  self_ = self;
  resolved_ = std::move(resolved);
  if (is_over_) return;
  if (Status begun = connect_next(); !begun) tell(begun);
}

Status Connector::connect_next() {
  auto set_up = queues_->set_up();
  if (!set_up) return set_up.status();
  auto channel = set_up.value()->channel();
  if (!channel) return channel.status();
  rdma_cm_id* id = nullptr;
  if (::rdma_create_id(channel.value(), &id, nullptr, RDMA_PS_TCP) != 0) return verbs_error("rdma_create_id", errno);
  connecting_.reset(id);
  device::set_handler(*id, this);
  not_taken_ = device::set_options(id, fabric_);
  if (::rdma_resolve_addr(id, source_ ? source_->at() : nullptr, resolved_->ai_addr, kResolveMilliseconds) != 0) {
    return verbs_error("cannot connect to rdma:" + address_, errno);
  }
  return Status::ok();
}

void Connector::on_cm_event(const rdma_cm_event& event) {
  if (is_over_) return;
  if (Status handled = handle(event); !handled) tell(handled);
}

Status Connector::handle(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return on_address(*event.id);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return on_route(*event.id);
    case RDMA_CM_EVENT_ESTABLISHED:
      return on_established(event);
    case RDMA_CM_EVENT_REJECTED:
      return on_rejected(event);
    case RDMA_CM_EVENT_DISCONNECTED:
      return Status::error("the peer is gone");
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return Status::error("the RDMA device is gone");
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return Status::ok();
    default:
      return cm_error(address_, event);
  }
}

// The route leads by some port. What is wanted of that port may belong to another of its addresses.
Status Connector::on_address(rdma_cm_id& id) {
  if (Status serves = device::check_device(id.verbs); !serves) {
    return Status::error("cannot connect to rdma:" + address_ + ": " + serves.message());
  }
  if (!source_ && (fabric_.gid_index || fabric_.pkey)) {
    auto wanted = device::source_for(&id, fabric_);
    if (!wanted) return Status::error("cannot connect to rdma:" + address_ + ": " + wanted.message());
    source_ = wanted.value();
    if (source_) {
      rebind();
      return Status::ok();
    }
  }
  if (::rdma_resolve_route(&id, kResolveMilliseconds) != 0) return verbs_error("rdma_resolve_route", errno);
  return Status::ok();
}

// The id gives way to one from source_; not in its own event.
void Connector::rebind() {
  auto set_up = queues_->set_up();
  if (!set_up) return tell(set_up.status());
  set_up.value()->post([weak = self_] {
    const std::shared_ptr<Connector> self = weak.lock();
    if (self == nullptr || self->is_over_) return;
    self->connecting_.reset();
    if (Status again = self->connect_next(); !again) self->tell(again);
  });
}

Status Connector::on_route(rdma_cm_id& id) {
  if (!parts_.is_open()) {
    const LinkSizes sizes{.sends = client_sends_for(lanes_, wanted_pairs_, window_),
                          .receives = receives_for(lanes_, wanted_pairs_, window_)};
    if (Status opened = parts_.open(id, sizes, Poster::kPollingThread); !opened) return opened;
    const std::scoped_lock held(mutex_);
    news_.basis = {.sizes = parts_.sizes(), .tag = parts_.tag(), .frames = &parts_.frames()};
  }
  if (Status added = parts_.add(std::move(connecting_), true); !added) return added;
  const ConnectData data{.index = static_cast<uint8_t>(connected_),
                         .queue_pairs = static_cast<uint8_t>(wanted_pairs_),
                         .flags = static_cast<uint8_t>((wanted_pairs_ > 1 ? kJoinsLate : 0) | kSolicits | kComesBack |
                                                       (came_back_ ? kCameBack : 0)),
                         .token = token_,
                         .window = static_cast<uint8_t>(window_)};
  rdma_conn_param parameters{};
  parameters.private_data = &data;
  parameters.private_data_len = sizeof data;
  const int most_reads = parts_.device().limits().max_qp_init_rd_atom;
  offered_reads_ = static_cast<uint32_t>(std::clamp<int>(most_reads, 1, kMaxReadDepth));
  parameters.initiator_depth = static_cast<uint8_t>(offered_reads_);
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRnrRetries;
  if (::rdma_connect(&id, &parameters) != 0) return verbs_error("cannot connect to rdma:" + address_, errno);
  return Status::ok();
}

Status Connector::on_established(const rdma_cm_event& event) {
  AcceptData data;
  const rdma_conn_param& connection = event.param.conn;
  if (connection.private_data == nullptr || connection.private_data_len < sizeof data) {
    return Status::error("rdma:" + address_ + " is no egret-backend");
  }
  std::memcpy(&data, connection.private_data, sizeof data);
  if (data.magic != AcceptData::kMagic || data.version != AcceptData{}.version) {
    return Status::error("rdma:" + address_ + " is no egret-backend, or of another version");
  }
  if (Status taken = device::check_path(&parts_.id(connected_), fabric_); !taken) {
    return Status::error("rdma:" + address_ + ": " + taken.message());
  }
  parts_.connected(connected_);
  const uint32_t index = connected_++;
  if (index == 0) joins_late_ = wanted_pairs_ > 1 && (data.flags & kJoinsLate) != 0;
  if (!joins_late_) token_ = data.token;
  const bool are_all = connected_ == wanted_pairs_;
  const std::string path = index == 0 ? device::describe_path(&parts_.id(0)) : std::string();
  {
    const std::scoped_lock held(mutex_);
    news_.connected.push_back({.handle = parts_.pair(index),
                               .inline_bytes = parts_.inline_bytes(),
                               .read_depth = std::min<uint32_t>(data.read_depth, offered_reads_),
                               .peer_solicits = (data.flags & kSolicits) != 0});
    news_.joins_late = joins_late_;
    if (index == 0) {
      news_.path = path;
      news_.remarks = (parts_.has_thread_domain() ? ", thread domain" : "") + not_taken_;
    }
  }
  tell(Status::ok());
  return !are_all && (is_invited_ || !joins_late_) ? connect_next() : Status::ok();
}

// Only a session's first queue pair is told to come back. Whoever rejects it may say what it likes: see RejectData.
Status Connector::on_rejected(const rdma_cm_event& event) {
  RejectData data;
  const rdma_conn_param& connection = event.param.conn;
  if (connected_ == 0 && connection.private_data != nullptr && connection.private_data_len >= sizeof data) {
    std::memcpy(&data, connection.private_data, sizeof data);
    const bool is_known = data.magic == RejectData::kMagic && data.version == RejectData{}.version;
    if (is_known && data.come_back_ms > 0) {
      const std::scoped_lock held(mutex_);
      news_.come_back_ms = data.come_back_ms;
      return Status::error("asked to come back: rdma:" + address_ + " has many newcomers");
    }
  }
  return cm_error(address_, event);
}

void Connector::join(const Invitation& invitation) {
  if (is_over_) return;
  is_invited_ = true;
  token_ = invitation.token;
  wanted_pairs_ = invitation.queue_pairs;
  if (connected_ == wanted_pairs_) return;
  if (Status begun = connect_next(); !begun) tell(begun);
}

// --- memory, and the end

void Connector::map(const RegionShape& shape) {
  if (is_over_) return;
  const Status made = make_memories(shape);
  if (made) {
    const std::scoped_lock held(mutex_);
    news_.is_mapped = true;
  }
  tell(made);
}

Status Connector::make_memories(const RegionShape& shape) {
  if (Status made = parts_.make(requests_, shape.request_bytes, 0); !made) return made;
  if (Status made = parts_.make(responses_, shape.response_bytes, IBV_ACCESS_LOCAL_WRITE); !made) return made;
  return parts_.make(replies_, shape.response_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

void Connector::disconnect() {
  parts_.disconnect();
}

void Connector::end() {
  is_over_ = true;
  parts_.shut();
  connecting_.reset();
}

}  // namespace egret::transport::verbs
