// The proxy's end of the verbs transport: resolves, connects its queue pairs one after the other, writes requests,
// reads responses, receives deliveries.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <sys/epoll.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "transport/device/fabric.h"
#include "transport/name_lookup.h"
#include "transport/verbs.h"
#include "transport/verbs_link.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;
using namespace verbs;

namespace {

constexpr LinkSizes kSizes{.sends = 512, .receives = 256};
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

// Connecting, queue pair by queue pair → kFrames → kData.
class VerbsClientEndpoint final : public ClientEndpoint {
 public:
  VerbsClientEndpoint(std::string address, const ConnectOptions& options)
      : address_(std::move(address)),
        fabric_(options.fabric),
        came_back_(options.came_back),
        wanted_pairs_(std::clamp(options.queue_pairs, 1u, kMaxQueuePairs)) {}
  ~VerbsClientEndpoint() override { link_.shut(); }

  Status start(const HostPort& at, EventChannel channel) {
    channel_ = std::move(channel);
    control_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!control_.is_open()) return Status::system_error("epoll_create1", errno);
    if (Status watched = watch(channel_->fd); !watched) return watched;
    auto address = resolve(at, Resolve::kAddress);
    if (address) {
      resolved_ = std::move(address.value());
      return connect_next();
    }
    lookup_.emplace(at);
    return watch(lookup_->fd());
  }

 private:
  int control_fd() const override { return control_.get(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override;
  std::string failure() const override { return violation_.empty() ? link_.failure() : violation_; }

  Status map_region(const RegionShape& shape) override;
  const Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests_.data(); }
  const std::byte* response_image() const override { return responses_.data(); }

  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    link_.stage_write(lane, complete(offset, length, first_word), keys_.requests, offset);
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    link_.stage_write_with_immediate(lane, complete(offset, length, first_word), keys_.requests, offset, lane);
  }
  void stage_read(uint32_t lane, size_t offset, size_t length, uint64_t tag) override {
    EGRET_DCHECK(offset + length <= responses_.size());
    const LocalBytes into{responses_.data() + offset, static_cast<uint32_t>(length), responses_.local_key()};
    link_.stage_read(lane, into, keys_.responses, offset, tag);
  }
  void flush() override { link_.flush(); }
  size_t poll(std::span<Event> events) override;
  void ring(uint32_t lane) override {
    link_.stage_write_with_immediate(lane, {}, {}, 0, lane);
    link_.flush();
  }
  int data_fd() const override { return link_.channel_fd(); }
  void ready() override { was_readable_ = true; }
  void arm() override { link_.arm(std::exchange(was_readable_, false)); }
  void keep_alive() override {
    link_.stage_probes();
    link_.flush();
  }
  uint32_t come_back_ms() const override { return come_back_ms_; }
  void close() override {
    for (const CmId& id : ids_) ::rdma_disconnect(id.get());
    closed_ = true;
  }

 private:
  Status watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(control_.get(), EPOLL_CTL_ADD, fd, &event) < 0) return Status::system_error("epoll_ctl", errno);
    return Status::ok();
  }
  Status take_lookup();
  Status connect_next();
  Status take_cm_events();
  Status on_cm_event(const rdma_cm_event& event);
  Status on_address(rdma_cm_id* id);
  Status on_route(rdma_cm_id* id);
  Status on_established(const rdma_cm_event& event);
  Status on_rejected(const rdma_cm_event& event);
  Status on_invitation(const std::vector<std::byte>& attachment);
  // Whether frames may be sent: the first queue pair is connected, and no other must be before them.
  bool may_speak() const { return connected_ > 0 && (joins_late_ || connected_ == wanted_pairs_); }
  bool to_event(const Completion& completion, Event& event);
  // The bytes to be written at `offset`, first word included.
  LocalBytes complete(size_t offset, size_t length, uint64_t first_word) {
    EGRET_DCHECK(offset + length <= requests_.size() && length >= sizeof first_word);
    std::byte* const at = requests_.data() + offset;
    std::memcpy(at, &first_word, sizeof first_word);
    return {at, static_cast<uint32_t>(length), requests_.local_key()};
  }
  // Lanes have equal shares of response memory.
  uint32_t lane_of(size_t offset) const {
    return static_cast<uint32_t>(offset / (shape_.response_bytes / shape_.lanes));
  }

  const std::string address_;
  const FabricOptions fabric_;
  const bool came_back_;
  uint32_t come_back_ms_ = 0;
  uint32_t wanted_pairs_;             // queue pairs; not more than an invitation has named
  std::optional<NameLookup> lookup_;  // while it is under way
  AddressInfo resolved_;
  std::optional<device::SourceAddress> source_;  // if it is not the automatic one
  bool must_rebind_ = false;                     // the last id gives way to one from source_
  std::string not_taken_;                        // options that rdma_cm refused, for the log
  EventChannel channel_;                         // outlives the ids
  std::vector<CmId> ids_;                        // outlive the link's queue pairs
  VerbsLink link_;                               // outlives the memories
  UniqueFd control_;                             // readable when either channel is
  uint32_t connected_ = 0;                       // queue pairs
  uint32_t offered_reads_ = 1;
  uint32_t reads_ = 1;       // that may be under way on all queue pairs
  bool joins_late_ = false;  // the further queue pairs wait for an invitation
  bool is_invited_ = false;  // it has come
  uint64_t token_ = 0;
  bool was_readable_ = false;  // data_fd(), since it was armed
  bool closed_ = false;
  std::string violation_;                               // how the backend violated the protocol; empty: it did not
  bool failed_ = false;                                 // failed while it read frames: receive_frame() reports it
  std::vector<std::vector<std::byte>> waiting_frames_;  // until connected
  std::vector<std::byte> attachment_;                   // of the last frame that had one

  Limits limits_;
  RegionShape shape_;
  RegionKeys keys_;
  PinnedMemory requests_, responses_, replies_;
};

// --- connecting

Status VerbsClientEndpoint::take_lookup() {
  auto found = lookup_->take();
  if (!found) return found.status();
  if (found.value() == nullptr) return Status::ok();
  ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, lookup_->fd(), nullptr);
  lookup_.reset();
  resolved_ = std::move(found.value());
  return connect_next();
}

Status VerbsClientEndpoint::connect_next() {
  rdma_cm_id* id = nullptr;
  if (::rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0) return verbs_error("rdma_create_id", errno);
  ids_.emplace_back(id);
  not_taken_ = device::set_options(id, fabric_);
  if (::rdma_resolve_addr(id, source_ ? source_->at() : nullptr, resolved_->ai_addr, kResolveMilliseconds) != 0) {
    return verbs_error("cannot connect to rdma:" + address_, errno);
  }
  return Status::ok();
}

Status VerbsClientEndpoint::take_cm_events() {
  rdma_cm_event* event = nullptr;
  while (::rdma_get_cm_event(channel_.get(), &event) == 0) {
    Status handled = on_cm_event(*event);
    ::rdma_ack_cm_event(event);  // an id goes only when its events are acknowledged
    if (!handled) return handled;
    if (!std::exchange(must_rebind_, false)) continue;
    ids_.pop_back();
    if (Status again = connect_next(); !again) return again;
  }
  return Status::ok();
}

Status VerbsClientEndpoint::on_cm_event(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return on_address(event.id);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return on_route(event.id);
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
Status VerbsClientEndpoint::on_address(rdma_cm_id* id) {
  if (Status serves = device::check_device(id->verbs); !serves) {
    return Status::error("cannot connect to rdma:" + address_ + ": " + serves.message());
  }
  if (!source_ && (fabric_.gid_index || fabric_.pkey)) {
    auto wanted = device::source_for(id, fabric_);
    if (!wanted) return Status::error("cannot connect to rdma:" + address_ + ": " + wanted.message());
    source_ = wanted.value();
    must_rebind_ = source_.has_value();
    if (must_rebind_) return Status::ok();
  }
  if (::rdma_resolve_route(id, kResolveMilliseconds) != 0) return verbs_error("rdma_resolve_route", errno);
  return Status::ok();
}

Status VerbsClientEndpoint::on_route(rdma_cm_id* id) {
  if (link_.domain() == nullptr) {
    if (Status opened = link_.open(id->verbs, wanted_pairs_, kSizes); !opened) return opened;
    link_.arm(true);
    if (Status watched = watch(link_.channel_fd()); !watched) return watched;
    if (Status watched = watch(link_.alarm().fd()); !watched) return watched;
  }
  if (Status added = link_.add_queue_pair(id); !added) return added;
  ibv_device_attr device{};
  if (const int error = ::ibv_query_device(id->verbs, &device); error != 0)
    return verbs_error("ibv_query_device", error);
  const ConnectData data{.index = static_cast<uint8_t>(connected_),
                         .queue_pairs = static_cast<uint8_t>(wanted_pairs_),
                         .flags = static_cast<uint8_t>((wanted_pairs_ > 1 ? kJoinsLate : 0) | kSolicits | kComesBack |
                                                       (came_back_ ? kCameBack : 0)),
                         .token = token_};
  rdma_conn_param parameters{};
  parameters.private_data = &data;
  parameters.private_data_len = sizeof data;
  offered_reads_ = static_cast<uint32_t>(std::clamp<int>(device.max_qp_init_rd_atom, 1, kMaxReadDepth));
  parameters.initiator_depth = static_cast<uint8_t>(offered_reads_);
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRnrRetries;
  if (::rdma_connect(id, &parameters) != 0) return verbs_error("cannot connect to rdma:" + address_, errno);
  return Status::ok();
}

Status VerbsClientEndpoint::on_established(const rdma_cm_event& event) {
  AcceptData data;
  const rdma_conn_param& connection = event.param.conn;
  if (connection.private_data == nullptr || connection.private_data_len < sizeof data) {
    return Status::error("rdma:" + address_ + " is no egret-backend");
  }
  std::memcpy(&data, connection.private_data, sizeof data);
  if (data.magic != AcceptData::kMagic || data.version != AcceptData{}.version) {
    return Status::error("rdma:" + address_ + " is no egret-backend, or of another version");
  }
  if (Status taken = device::check_path(ids_[connected_].get(), fabric_); !taken) {
    return Status::error("rdma:" + address_ + ": " + taken.message());
  }
  reads_ = link_.set_connected(connected_, std::min<uint32_t>(data.read_depth, offered_reads_),
                               (data.flags & kSolicits) != 0);
  if (connected_++ == 0) joins_late_ = wanted_pairs_ > 1 && (data.flags & kJoinsLate) != 0;
  if (!joins_late_) token_ = data.token;
  const bool may_go_on = is_invited_ || !joins_late_;
  if (connected_ < wanted_pairs_ && may_go_on) return connect_next();
  for (const auto& frame : waiting_frames_) {
    if (Status sent = link_.send_frame(frame, {}); !sent) return sent;
  }
  waiting_frames_.clear();
  return Status::ok();
}

// Only a session's first queue pair is told to come back. Whoever rejects it may say what it likes: see RejectData.
Status VerbsClientEndpoint::on_rejected(const rdma_cm_event& event) {
  RejectData data;
  const rdma_conn_param& connection = event.param.conn;
  if (connected_ == 0 && connection.private_data != nullptr && connection.private_data_len >= sizeof data) {
    std::memcpy(&data, connection.private_data, sizeof data);
    const bool is_known = data.magic == RejectData::kMagic && data.version == RejectData{}.version;
    if (is_known) come_back_ms_ = data.come_back_ms;
  }
  if (come_back_ms_ == 0) return cm_error(address_, event);
  return Status::error("asked to come back: rdma:" + address_ + " has many newcomers");
}

Status VerbsClientEndpoint::on_invitation(const std::vector<std::byte>& attachment) {
  Invitation invitation;
  if (!joins_late_ || is_invited_ || attachment.size() != sizeof invitation) {
    return Status::error("an unexpected control frame");
  }
  std::memcpy(&invitation, attachment.data(), sizeof invitation);
  if (invitation.queue_pairs == 0 || invitation.queue_pairs > wanted_pairs_) {
    return Status::error("the backend gives more queue pairs than were asked for, or none");
  }
  is_invited_ = true;
  token_ = invitation.token;
  wanted_pairs_ = invitation.queue_pairs;
  return wanted_pairs_ > 1 ? connect_next() : Status::ok();
}

// --- frames

Status VerbsClientEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  length = 0;
  if (lookup_) return take_lookup();
  if (Status well = link_.alarm().status(); !well) return well;
  const bool in_data = requests_.data() != nullptr;
  if (link_.domain() != nullptr && !in_data) failed_ |= link_.drain().failed;
  // Frames that were sent before the link failed are read before the failure is told.
  for (Frame received; link_.take_frame(received);) {
    if (!received.bytes.empty()) {
      if (!received.attachment.empty()) attachment_ = std::move(received.attachment);
      return copy_frame(received, frame, length);
    }
    if (Status invited = on_invitation(received.attachment); !invited) return invited;
  }
  if (Status handled = take_cm_events(); !handled) return handled;
  return failed_ ? Status::error(link_.failure()) : Status::ok();
}

Status VerbsClientEndpoint::send_frame(std::span<const std::byte> frame, bool attach) {
  if (!may_speak()) {
    waiting_frames_.emplace_back(frame.begin(), frame.end());
    return Status::ok();
  }
  if (!attach) return link_.send_frame(frame, {});
  const ReplyKeys keys{.replies = {.address = reinterpret_cast<uint64_t>(replies_.data()),
                                   .bytes = replies_.size(),
                                   .key = replies_.remote_key()}};
  return link_.send_frame(frame, std::as_bytes(std::span(&keys, 1)));
}

std::string VerbsClientEndpoint::facts() const {
  if (ids_.empty() || ids_[0]->verbs == nullptr) return "rdma, not connected";
  return device::describe_path(ids_[0].get()) + ", " + link_.facts() + not_taken_;
}

// --- data

Status VerbsClientEndpoint::map_region(const RegionShape& shape) {
  if (connected_ < wanted_pairs_) return Status::error("the backend granted a session before it let all of it join");
  if (attachment_.size() != sizeof keys_) return Status::error("the backend granted a session without its region");
  std::memcpy(&keys_, attachment_.data(), sizeof keys_);
  if (keys_.requests.bytes != shape.request_bytes || keys_.responses.bytes != shape.response_bytes) {
    return Status::error("the backend's region is not of the agreed size");
  }
  shape_ = shape;
  limits_ = {.read_depth = reads_, .needs_keep_alive = true};
  if (Status made = requests_.create(link_.domain(), shape.request_bytes, 0); !made) return made;
  if (Status made = responses_.create(link_.domain(), shape.response_bytes, IBV_ACCESS_LOCAL_WRITE); !made) return made;
  constexpr int kReply = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (Status made = replies_.create(link_.domain(), shape.response_bytes, kReply); !made) return made;
  // From here on the channel belongs to data_fd() alone.
  ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, link_.channel_fd(), nullptr);
  return Status::ok();
}

size_t VerbsClientEndpoint::poll(std::span<Event> events) {
  if (closed_) return 0;
  std::array<Completion, 64> completions;
  size_t found = 0;
  while (found < events.size()) {
    const size_t room = std::min(completions.size(), events.size() - found);
    const size_t count = link_.poll(std::span(completions).first(room));
    for (const Completion& completion : std::span(completions).first(count)) {
      if (to_event(completion, events[found])) ++found;
    }
    if (count < room) break;
  }
  return found;
}

bool VerbsClientEndpoint::to_event(const Completion& completion, Event& event) {
  switch (completion.kind) {
    case Completion::Kind::kRead:
      event = {.kind = Event::Kind::kFetched, .lane = 0, .tag = completion.tag, .bytes = {}};
      return true;
    case Completion::Kind::kImmediate: {
      // The immediate names the response slot that was pushed; its reply slot is at the same offset.
      const size_t offset = size_t{completion.immediate} * shape_.reply_bytes;
      if (offset >= shape_.response_bytes || completion.bytes > shape_.reply_bytes) {
        violation_ = "the backend delivered to where there is no slot";
        event = {.kind = Event::Kind::kClosed};
        return true;
      }
      event = {.kind = Event::Kind::kDelivered,
               .lane = lane_of(offset),
               .tag = 0,
               .bytes = {replies_.data() + offset, completion.bytes}};
      return true;
    }
    case Completion::Kind::kFrame: {
      Frame late;  // a refusal: what follows is the end
      link_.take_frame(late);
      return false;
    }
    case Completion::Kind::kFailed:
      event = {.kind = Event::Kind::kClosed};
      return true;
  }
  return false;
}

}  // namespace

Expected<std::unique_ptr<ClientEndpoint>> verbs_connect(const std::string& host_port, const ConnectOptions& options) {
  auto parsed = parse_host_port(host_port);
  if (!parsed) return parsed.status();
  auto channel = make_event_channel();
  if (!channel) return channel.status();
  auto endpoint = std::make_unique<VerbsClientEndpoint>(host_port, options);
  if (Status started = endpoint->start(parsed.value(), std::move(channel.value())); !started) {
    return started;
  }
  return std::unique_ptr<ClientEndpoint>(std::move(endpoint));
}

Status check_verbs_address(const std::string& host_port) {
  return parse_host_port(host_port).status();
}

}  // namespace egret::transport
