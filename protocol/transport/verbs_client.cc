// The proxy's end of the verbs transport: writes requests, reads responses, receives deliveries. What commands the device is
// the Connector's, on another thread.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "transport/name_lookup.h"
#include "transport/verbs.h"
#include "transport/verbs/connector.h"
#include "transport/verbs/polling.h"
#include "transport/verbs_link.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using namespace verbs;

namespace {

// Connecting, queue pair by queue pair → kFrames → kData.
class VerbsClientEndpoint final : public ClientEndpoint {
 public:
  VerbsClientEndpoint(const std::string& address, const ConnectOptions& options, Polling polling)
      : polling_(std::move(polling)),
        wanted_pairs_(std::clamp(options.queue_pairs, 1u, kMaxQueuePairs)),
        connector_(std::make_shared<Connector>(address, options, polling_.queues(), inbox_, polling_.told())) {}
  ~VerbsClientEndpoint() override {
    inbox_->close();
    inbox_->set_listener(nullptr, 0);
    if (set_up_ == nullptr) return;
    connector_->cancel();
    set_up_->post([ended = std::move(connector_)] { ended->end(); });
    if (polling_.is_own()) set_up_->wait();  // nothing polls its queues any more
  }

  Status start(const HostPort& at) {
    auto set_up = polling_.queues()->set_up();
    if (!set_up) return set_up.status();
    set_up_ = std::move(set_up.value());
    if (Status watched = watch_set_up(); !watched) return watched;
    auto address = resolve(at, Resolve::kAddress);
    if (address) {
      begin(std::move(address.value()));
    } else {
      lookup_.emplace(at, polling_.told());
    }
    return Status::ok();
  }

 private:
  int control_fd() const override { return polling_.control_fd(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override {
    return path_.empty() ? "rdma, not connected" : path_ + ", " + link_.facts() + remarks_;
  }
  std::string failure() const override { return violation_.empty() ? link_.failure() : violation_; }

  Status map_region(const RegionShape& shape) override;
  bool is_mapped() const override { return is_mapped_; }
  const Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests_.at; }
  const std::byte* response_image() const override { return responses_.at; }

  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    link_.stage_write(lane, complete(offset, length, first_word), keys_.requests, offset);
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    link_.stage_write_with_immediate(lane, complete(offset, length, first_word), keys_.requests, offset, lane);
  }
  void stage_read(uint32_t lane, size_t offset, size_t length, uint64_t tag) override {
    EGRET_DCHECK(offset + length <= shape_.response_bytes);
    const LocalBytes into{responses_.at + offset, static_cast<uint32_t>(length), responses_.key};
    link_.stage_read(lane, into, keys_.responses, offset, tag);
  }
  void flush() override { link_.flush(); }
  size_t poll(std::span<Event> events) override;
  void ring(uint32_t lane) override {
    link_.stage_write_with_immediate(lane, {}, {}, 0, lane);
    link_.flush();
  }
  int data_fd() const override { return polling_.data_fd(); }
  void set_listener(ReadyListener* listener, uint64_t token) override { inbox_->set_listener(listener, token); }
  void ready() override { polling_.ready(); }
  void arm() override { polling_.arm(); }
  void keep_alive() override {
    link_.stage_probes();
    link_.flush();
  }
  uint32_t come_back_ms() const override { return come_back_ms_; }
  void close() override {
    closed_ = true;
    if (connector_ != nullptr) set_up_->post([connector = connector_] { connector->disconnect(); });
  }

 private:
  // Memory of our own, as verbs name it.
  struct Local {
    std::byte* at = nullptr;
    uint32_t key = 0;
  };

  // An error: this process has no device to use. Without a set-up thread its events are ours to take.
  Status watch_set_up() {
    auto channel = set_up_->channel();
    if (!channel) return channel.status();
    return set_up_->has_thread() ? Status::ok() : polling_.also_watch(channel.value()->fd);
  }
  void begin(AddressInfo resolved) {
    // A task is copied: it cannot own what can only be moved.
    auto shared = std::make_shared<AddressInfo>(std::move(resolved));
    set_up_->post_beginning([weak = std::weak_ptr(connector_), shared] {
      if (const auto connector = weak.lock()) connector->begin(connector, std::move(*shared));
    });
  }
  Status take_lookup();
  Status take_news();
  void take_memories();
  Status on_invitation(const std::vector<std::byte>& attachment);
  // Whether frames may be sent: the first queue pair is connected, and no other must be before them.
  bool may_speak() const { return connected_ > 0 && (joins_late_ || connected_ == wanted_pairs_); }
  bool to_event(const Completion& completion, Event& event);
  // The bytes to be written at `offset`, first word included.
  LocalBytes complete(size_t offset, size_t length, uint64_t first_word) {
    EGRET_DCHECK(offset + length <= shape_.request_bytes && length >= sizeof first_word);
    std::byte* const at = requests_.at + offset;
    std::memcpy(at, &first_word, sizeof first_word);
    return {at, static_cast<uint32_t>(length), requests_.key};
  }
  // Lanes have equal shares of response memory.
  uint32_t lane_of(size_t offset) const {
    return static_cast<uint32_t>(offset / (shape_.response_bytes / shape_.lanes));
  }

  Polling polling_;
  std::shared_ptr<SetUp> set_up_;  // from start() on
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>(polling_.told());
  uint32_t wanted_pairs_;  // queue pairs; not more than an invitation has named
  std::shared_ptr<Connector> connector_;
  VerbsLink link_{polling_.queues(), inbox_};
  std::optional<NameLookup> lookup_;  // while it is under way
  uint32_t connected_ = 0;            // queue pairs
  uint32_t reads_ = 1;                // that may be under way on all queue pairs
  bool joins_late_ = false;           // the further queue pairs wait for an invitation
  bool is_invited_ = false;           // it has come
  bool is_mapped_ = false;
  bool closed_ = false;
  uint32_t come_back_ms_ = 0;
  std::string path_, remarks_;                          // for a log line; once connected
  std::string violation_;                               // how the backend violated the protocol; empty: it did not
  bool failed_ = false;                                 // failed while it read frames: receive_frame() reports it
  std::vector<std::vector<std::byte>> waiting_frames_;  // until connected
  std::vector<std::byte> attachment_;                   // of the last frame that had one

  Limits limits_;
  RegionShape shape_;
  RegionKeys keys_;
  Local requests_, responses_;
  std::byte* replies_ = nullptr;
};

// --- connecting

Status VerbsClientEndpoint::take_lookup() {
  auto found = lookup_->take();
  if (!found) return found.status();
  if (found.value() == nullptr) return Status::ok();
  lookup_.reset();
  begin(std::move(found.value()));
  return Status::ok();
}

// What the set-up has done. How it ended comes last: frames that were sent before are read before.
Status VerbsClientEndpoint::take_news() {
  Connector::News news = connector_->take_news();
  if (news.basis) link_.open(*news.basis);
  if (!news.path.empty()) {
    path_ = std::move(news.path);
    remarks_ = std::move(news.remarks);
  }
  if (news.come_back_ms > 0) come_back_ms_ = news.come_back_ms;
  for (const Connector::ConnectedPair& pair : news.connected) {
    link_.add(pair.handle, pair.inline_bytes);
    reads_ = link_.set_connected(connected_, pair.read_depth, pair.peer_solicits);
    if (connected_++ == 0) joins_late_ = news.joins_late;
  }
  if (news.is_mapped) take_memories();
  if (!may_speak()) return news.ended;
  for (const auto& frame : waiting_frames_) {
    if (Status sent = link_.send_frame(frame, {}); !sent) return sent;
  }
  waiting_frames_.clear();
  return news.ended;
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
  wanted_pairs_ = invitation.queue_pairs;
  if (wanted_pairs_ > 1) set_up_->post([connector = connector_, invitation] { connector->join(invitation); });
  return Status::ok();
}

// --- frames

Status VerbsClientEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  length = 0;
  polling_.look();
  if (!set_up_->has_thread()) set_up_->take_turn();
  if (lookup_) return take_lookup();
  if (Status well = connector_->alarm(); !well) return well;
  Status going_on = take_news();
  if (link_.is_open() && !is_mapped_) failed_ |= link_.drain().failed;
  // Frames that were sent before the link failed are read before the failure is told.
  for (Frame received; link_.take_frame(received);) {
    if (!received.bytes.empty()) {
      if (!received.attachment.empty()) attachment_ = std::move(received.attachment);
      return copy_frame(received, frame, length);
    }
    if (Status invited = on_invitation(received.attachment); !invited) return invited;
  }
  if (!going_on) return going_on;
  return failed_ ? Status::error(link_.failure()) : Status::ok();
}

Status VerbsClientEndpoint::send_frame(std::span<const std::byte> frame, bool attach) {
  if (!may_speak()) {
    waiting_frames_.emplace_back(frame.begin(), frame.end());
    return Status::ok();
  }
  if (!attach) return link_.send_frame(frame, {});
  const PinnedMemory& replies = connector_->replies();
  const ReplyKeys keys{.replies = {.address = reinterpret_cast<uint64_t>(replies.data()),
                                   .bytes = replies.size(),
                                   .key = replies.remote_key()}};
  return link_.send_frame(frame, std::as_bytes(std::span(&keys, 1)));
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
  set_up_->post([connector = connector_, shape] { connector->map(shape); });
  return Status::ok();
}

void VerbsClientEndpoint::take_memories() {
  const auto local = [](const PinnedMemory& memory) { return Local{.at = memory.data(), .key = memory.local_key()}; };
  requests_ = local(connector_->requests());
  responses_ = local(connector_->responses());
  replies_ = connector_->replies().data();
  failed_ |= link_.begin_data().failed;
  polling_.begin_data();
  is_mapped_ = true;
}

size_t VerbsClientEndpoint::poll(std::span<Event> events) {
  if (closed_) return 0;
  polling_.poll();
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
               .bytes = {replies_ + offset, completion.bytes}};
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
  auto polling = Polling::of(options.group);
  if (!polling) return polling.status();
  auto endpoint = std::make_unique<VerbsClientEndpoint>(host_port, options, std::move(polling.value()));
  if (Status started = endpoint->start(parsed.value()); !started) return started;
  return std::unique_ptr<ClientEndpoint>(std::move(endpoint));
}

Status check_verbs_address(const std::string& host_port) {
  return parse_host_port(host_port).status();
}

}  // namespace egret::transport
