// The backend's end of the verbs transport: listens, makes queue pairs, registers regions, hears rings, pushes results.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"
#include "transport/device/fabric.h"
#include "transport/verbs.h"
#include "transport/verbs/polling.h"
#include "transport/verbs_door.h"
#include "transport/verbs_link.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using device::CmHandler;
using namespace verbs;

namespace {

constexpr uint8_t kRnrRetries = 7;  // without end: the client's worker is only slow
// Newcomers that one accept() tells to come back. Each takes microseconds; while they wait, they take places of the
// backlog.
constexpr int kAskedBackAtOnce = 256;
// Requests to connect that wait for accept(), beside those that the kernel keeps (kBacklog). More are rejected.
constexpr size_t kMostWaiting = 4096;

class VerbsServerEndpoint;

// Sessions that still take queue pairs, by the token that joins one. The control thread's.
using Joinable = std::map<uint64_t, VerbsServerEndpoint*>;

// When the peer connects its further queue pairs.
enum class Joining : uint8_t {
  kAtOnce,   // before its first frame, as in 0.1.0; or it has no further ones
  kInvited,  // when it has been told the token: kJoinsLate
  kTooSoon,  // it would at once, though it must prove first who it is: it is told nothing, and to be refused
};

// Where an endpoint is polled.
struct PlaceInGroup {
  Polling polling;
  int number = -1;  // of the group; -1: it is polled by itself
};

// A request to connect a queue pair that is not answered yet.
struct Request {
  CmId id;
  ConnectData data;
  uint8_t reads = 0;  // that the peer wants to have under way
};

// kRequested → prepare() → kFrames (the control thread's) → kData (the home's, but for rdma_cm's events)
class VerbsServerEndpoint final : public ServerEndpoint, private CmHandler {
 public:
  // `where`: the listener's address, for messages. From here on the first id's events come to this endpoint.
  VerbsServerEndpoint(std::shared_ptr<Joinable> joinable, Joining joining, Request first, const ListenOptions& options,
                      const std::string& where, PlaceInGroup place)
      : joinable_(std::move(joinable)),
        joining_(joining),
        fabric_(options.fabric),
        lanes_(options.lanes),
        group_(place.number),
        peer_group_(peer_host(first.id.get())),
        peer_(peer_name(first.id.get())),
        where_(where),
        polling_(std::move(place.polling)),
        first_(std::move(first)),
        parts_(polling_.queues(), inbox_, polling_.told()) {
    device::set_handler(*first_.id, this);
    if (joining_ != Joining::kAtOnce) return;
    token_ = base::random_u64();
    if (first_.data.queue_pairs > 1) joinable_->emplace(token_, this);
  }
  ~VerbsServerEndpoint() override { parts_.shut(); }

  int control_fd() const override { return polling_.control_fd(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override {
    return device::describe_path(&parts_.id(0)) + ", " + link_.facts() +
           (parts_.has_thread_domain() ? ", thread domain" : "") + not_taken_;
  }
  std::string failure() const override { return violation_.empty() ? link_.failure() : violation_; }

  Status create_region(const RegionShape& shape) override;
  const Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::string& peer_group() const override { return peer_group_; }
  Status let_join() override;
  bool is_whole() const override {
    return joining_ != Joining::kInvited || (token_ != 0 && connected_.load(std::memory_order_acquire) == promised_);
  }
  bool joins_too_early() const override { return joining_ == Joining::kTooSoon; }
  const std::byte* request_memory() const override { return requests_.data(); }
  std::byte* response_memory() override { return responses_.data(); }

  void close() override {
    joinable_->erase(token_);
    parts_.disconnect();
  }

 private:
  friend class VerbsListener;  // which connects its further queue pairs
  void deliver(uint32_t lane, size_t offset, size_t length) override;
  size_t poll(std::span<Event> events) override;
  int data_fd() const override { return polling_.data_fd(); }
  void set_listener(ReadyListener* listener, uint64_t token) override { inbox_->set_listener(listener, token); }
  int group() const override { return group_; }
  void ready() override { polling_.ready(); }
  void arm() override { polling_.arm(); }
  void keep_alive() override {
    link_.stage_probes();
    link_.flush();
  }
  bool is_admitted() const override { return true; }
  bool needs_preparing() const override { return first_.id != nullptr; }
  Status prepare() override {
    Status accepted = take_over(std::move(first_.id), first_.data, first_.reads);
    first_ = {};
    return accepted ? accepted : Status::error(where_ + ": " + peer_ + ": " + accepted.message());
  }
  uint32_t joined() const { return parts_.count(); }
  uint32_t promised() const { return promised_; }
  // Answers the request to connect `id`. After an error the endpoint is only to be closed.
  Status take_over(CmId id, const ConnectData& data, uint8_t wanted_reads);
  Status open(const rdma_cm_id& id, const ConnectData& data);
  void on_cm_event(const rdma_cm_event& event) override;
  Status how_it_ended();
  bool to_event(const Completion& completion, Event& event);
  void take_reply_keys();
  void push(uint32_t lane, size_t slot, uint32_t length);
  void push_undelivered();

  const std::shared_ptr<Joinable> joinable_;
  const Joining joining_;
  const FabricOptions fabric_;
  const uint32_t lanes_;  // that a session has
  const int group_;
  std::string not_taken_;  // options that rdma_cm refused, for the log
  uint64_t token_ = 0;     // by which further queue pairs join; 0: none
  const std::string peer_group_;
  const std::string peer_;
  const std::string where_;
  Polling polling_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>(polling_.told());
  uint32_t promised_ = 1;  // queue pairs that the session is to have
  // What rdma_cm has said, on the set-up thread.
  std::atomic<uint32_t> connected_{0};  // of these; joined() are accepted
  std::mutex mutex_;
  Status ended_ = Status::ok();  // the mutex

  Request first_;  // until it is prepared; it and the parts' ids go before what their events change
  SessionParts parts_;
  VerbsLink link_{polling_.queues(), inbox_};
  bool in_data_ = false;  // the region's frame is sent: the link is the home's

  Limits limits_{.needs_keep_alive = true, .transport = "rdma"};
  RegionShape shape_;
  PinnedMemory requests_, responses_;
  // The home's.
  std::string violation_;  // what the client did against the protocol; then no event is reported any more
  RemoteMemory replies_;
  std::vector<uint32_t> undelivered_;  // by response slot: how much of it is to be pushed as soon as may be; 0: nothing
  size_t undelivered_count_ = 0;
};

// --- connecting

Status VerbsServerEndpoint::open(const rdma_cm_id& id, const ConnectData& data) {
  promised_ = std::clamp<uint32_t>(data.queue_pairs, 1, kMaxQueuePairs);
  const LinkSizes sizes{.sends = server_sends_for(lanes_, promised_, data.window),
                        .receives = receives_for(lanes_, promised_, data.window)};
  if (Status opened = parts_.open(id, sizes, Poster::kSeveral); !opened) return opened;
  link_.open({.sizes = parts_.sizes(), .tag = parts_.tag(), .frames = &parts_.frames()});
  return Status::ok();
}

// Before the peer is known to be who it should be, only the receives of its frames are posted: a peer of whom nothing is
// known brings few completions to the thread that polls for all.
Status VerbsServerEndpoint::take_over(CmId id, const ConnectData& data, uint8_t wanted_reads) {
  if (Status serves = device::check_device(id->verbs); !serves) return serves;
  if (!parts_.is_open()) {
    if (Status opened = open(*id, data); !opened) return opened;
  } else if (id->verbs != parts_.device().context()) {
    return Status::error("the queue pairs of one session came by several devices");
  }
  // From here on its events come to this endpoint, not to the listener.
  device::set_handler(*id, this);
  not_taken_ = device::set_options(id.get(), fabric_);
  const bool is_first = joined() == 0;
  if (Status added = parts_.add(std::move(id), !is_first); !added) return added;
  const uint32_t index = joined() - 1;
  link_.add(parts_.pair(index), parts_.inline_bytes());
  const int depth =
      std::min({int{wanted_reads}, parts_.device().limits().max_qp_rd_atom, static_cast<int>(kMaxReadDepth)});
  const AcceptData answer{.read_depth = static_cast<uint8_t>(std::max(depth, 1)),
                          .flags = static_cast<uint8_t>((joining_ == Joining::kInvited ? kJoinsLate : 0) | kSolicits),
                          .token = token_};
  rdma_conn_param parameters{};
  parameters.private_data = &answer;
  parameters.private_data_len = sizeof answer;
  parameters.responder_resources = answer.read_depth;
  parameters.rnr_retry_count = kRnrRetries;
  if (::rdma_accept(&parts_.id(index), &parameters) != 0) return verbs_error("rdma_accept", errno);
  parts_.connected(index);
  link_.set_connected(index, answer.read_depth, (data.flags & kSolicits) != 0);
  return Status::ok();
}

// A peer that joins at once has done so before its first frame: from here on another thread may create the region.
Status VerbsServerEndpoint::let_join() {
  if (joining_ != Joining::kInvited) joinable_->erase(token_);
  if (joining_ != Joining::kInvited || token_ != 0) return Status::ok();
  token_ = base::random_u64();
  joinable_->emplace(token_, this);
  const Invitation invitation{.token = token_, .queue_pairs = promised_};
  return link_.send_frame({}, std::as_bytes(std::span(&invitation, 1)));
}

void VerbsServerEndpoint::on_cm_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_TIMEWAIT_EXIT || event.event == RDMA_CM_EVENT_ADDR_CHANGE) return;
  if (event.event == RDMA_CM_EVENT_ESTABLISHED) {
    connected_.fetch_add(1, std::memory_order_acq_rel);
  } else {
    const std::scoped_lock held(mutex_);
    ended_ = event.event == RDMA_CM_EVENT_DISCONNECTED ? Status::error("the peer is gone")
             : event.event == RDMA_CM_EVENT_DEVICE_REMOVAL
                 ? Status::error("the RDMA device is gone")
                 : Status::error(std::string("the connection ended: ") + ::rdma_event_str(event.event));
  }
  polling_.told()->notify();
}

Status VerbsServerEndpoint::how_it_ended() {
  const std::scoped_lock held(mutex_);
  return ended_;
}

// --- frames

Status VerbsServerEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  length = 0;
  polling_.look();
  if (Status well = parts_.alarm(); !well) return well;
  if (!in_data_) {
    if (link_.drain().has_immediate) return Status::error("the peer rang before it had a session");
    // Frames of a link that has failed are not read: the failure is told once, and no session may open on such a link.
    if (!link_.failure().empty()) return Status::error(link_.failure());
    if (Frame received; link_.take_frame(received)) {
      if (!how_it_ended()) polling_.told()->notify();  // to be looked at behind the frames, whoever reads on, and when
      return copy_frame(received, frame, length);
    }
  }
  return how_it_ended();
}

Status VerbsServerEndpoint::send_frame(std::span<const std::byte> frame, bool attach) {
  if (!attach) return in_data_ ? Status::error("the session is open") : link_.send_frame(frame, {});
  // From here on a frame is the one with the reply slots.
  const VerbsLink::Drained before = link_.begin_data();
  if (before.failed) return Status::error(link_.failure());
  if (Frame early; before.has_immediate || link_.take_frame(early)) {
    return Status::error("an unexpected control frame");
  }
  const auto keys_of = [](const PinnedMemory& memory) {
    return RemoteMemory{
        .address = reinterpret_cast<uint64_t>(memory.data()), .bytes = memory.size(), .key = memory.remote_key()};
  };
  const RegionKeys keys{.requests = keys_of(requests_), .responses = keys_of(responses_)};
  if (Status sent = link_.send_frame(frame, std::as_bytes(std::span(&keys, 1))); !sent) return sent;
  in_data_ = true;
  polling_.begin_data();
  return Status::ok();
}

Status VerbsServerEndpoint::create_region(const RegionShape& shape) {
  shape_ = shape;
  undelivered_.assign(shape.response_bytes / shape.reply_bytes, 0);
  constexpr int kRequests = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (Status made = parts_.make(requests_, shape.request_bytes, kRequests); !made) return made;
  if (Status made = parts_.make(responses_, shape.response_bytes, IBV_ACCESS_REMOTE_READ); !made) return made;
  return parts_.post_all();
}

// --- data

// The response goes to the reply slot of the same offset. Where the client reaches is the client's own claim: a wrong
// one is refused by its device and ends this session.
void VerbsServerEndpoint::deliver(uint32_t lane, size_t offset, size_t length) {
  const size_t slot = offset / shape_.reply_bytes;
  // Before its reply slots are known, or while the send queue is full, only what is to be pushed is remembered: once a
  // slot, so that a client that asks for more than it takes costs no memory.
  if (replies_.bytes == 0 || undelivered_count_ > 0 || link_.has_staged()) {
    undelivered_count_ += undelivered_[slot] == 0 ? 1 : 0;
    undelivered_[slot] = std::max(undelivered_[slot], static_cast<uint32_t>(length));
    return;
  }
  push(lane, slot, static_cast<uint32_t>(length));
  link_.flush();
}

void VerbsServerEndpoint::push(uint32_t lane, size_t slot, uint32_t length) {
  const size_t offset = slot * shape_.reply_bytes;
  const LocalBytes from{responses_.data() + offset, length, responses_.local_key()};
  link_.stage_write_with_immediate(lane, from, replies_, offset, static_cast<uint32_t>(slot));
}

void VerbsServerEndpoint::push_undelivered() {
  const size_t slots_per_lane = undelivered_.size() / shape_.lanes;
  for (size_t slot = 0; slot < undelivered_.size() && undelivered_count_ > 0 && !link_.has_staged(); ++slot) {
    if (undelivered_[slot] == 0) continue;
    push(static_cast<uint32_t>(slot / slots_per_lane), slot, std::exchange(undelivered_[slot], 0));
    --undelivered_count_;
    link_.flush();
  }
}

size_t VerbsServerEndpoint::poll(std::span<Event> events) {
  polling_.poll();
  std::array<Completion, 16> completions;
  size_t found = 0;
  while (found < events.size() && violation_.empty()) {
    const size_t room = std::min(completions.size(), events.size() - found);
    const size_t count = link_.poll(std::span(completions).first(room));
    for (const Completion& completion : std::span(completions).first(count)) {
      if (violation_.empty() && to_event(completion, events[found])) ++found;
    }
    if (count < room) break;
  }
  if (undelivered_count_ > 0 && replies_.bytes != 0) push_undelivered();
  return found;
}

bool VerbsServerEndpoint::to_event(const Completion& completion, Event& event) {
  switch (completion.kind) {
    case Completion::Kind::kImmediate:
      if (completion.immediate < shape_.lanes) {
        event = {.kind = Event::Kind::kRing, .lane = completion.immediate, .tag = 0, .bytes = {}};
        return true;
      }
      violation_ = "the peer rang for a lane that it does not have";
      break;
    case Completion::Kind::kFrame:
      take_reply_keys();
      if (violation_.empty()) return false;
      break;
    case Completion::Kind::kFailed:
      break;
    case Completion::Kind::kRead:
      return false;
  }
  event = {.kind = Event::Kind::kClosed};
  return true;
}

// The one frame that may come after the region's: it says where deliveries go.
void VerbsServerEndpoint::take_reply_keys() {
  Frame frame;
  ReplyKeys keys;
  if (!link_.take_frame(frame) || replies_.bytes != 0 || frame.attachment.size() != sizeof keys) {
    violation_ = "an unexpected control frame";
    return;
  }
  std::memcpy(&keys, frame.attachment.data(), sizeof keys);
  if (keys.replies.bytes == shape_.response_bytes) {
    replies_ = keys.replies;
  } else {
    violation_ = "the peer's reply slots are not of the agreed size";
  }
}

// --- listening

class VerbsListener final : public Listener, private CmHandler {
 public:
  VerbsListener(std::string address, AddressInfo resolved, const ListenOptions& options)
      : address_(std::move(address)), resolved_(std::move(resolved)), options_(options) {}
  ~VerbsListener() override {
    id_.reset();
    if (set_up_ == nullptr) return;
    set_up_->wait();  // it may be handling an event
    waiting_.clear();
    set_up_->wait();
  }

  Status begin() {
    const std::string cannot = "cannot listen on rdma:" + address_ + ": ";
    auto notifier = device::Notifier::make();
    if (!notifier) return notifier.status();
    told_ = std::move(notifier.value());
    auto set_up = SetUp::of_process();
    if (!set_up) return set_up.status();
    set_up_ = std::move(set_up.value());
    auto channel = set_up_->channel();
    if (!channel) return Status::error(cannot + channel.message());
    channel_ = channel.value();
    return listen();
  }

  int fd() const override { return told_->fd(); }
  bool needs_pause() const override { return needs_pause_; }
  void set_doorkeeper(Doorkeeper* doorkeeper) override { doorkeeper_ = doorkeeper; }

  Expected<std::unique_ptr<ServerEndpoint>> accept() override {
    for (int asked_back = 0; asked_back < kAskedBackAtOnce; ++asked_back) {
      was_asked_back_ = false;
      auto accepted = accept_next();
      if (!was_asked_back_) return accepted;
    }
    return std::unique_ptr<ServerEndpoint>();
  }

 private:
  Status listen();
  void on_cm_event(const rdma_cm_event& event) override;
  std::optional<Request> take_request();
  Expected<std::unique_ptr<ServerEndpoint>> accept_next();
  Status look_at_itself();
  Expected<std::unique_ptr<ServerEndpoint>> answer(CmId id, const ConnectData& data, uint8_t reads);
  Expected<std::unique_ptr<ServerEndpoint>> make_session(Request first);
  Expected<std::unique_ptr<ServerEndpoint>> join(VerbsServerEndpoint& endpoint, CmId id, const ConnectData& data,
                                                 uint8_t reads);
  Joining joining_of(const ConnectData& first) const {
    if ((first.flags & kJoinsLate) != 0) return Joining::kInvited;
    const bool must_prove = doorkeeper_ != nullptr && doorkeeper_->asks_for_proof();
    return first.queue_pairs > 1 && must_prove ? Joining::kTooSoon : Joining::kAtOnce;
  }

  const std::string address_;
  const AddressInfo resolved_;
  const ListenOptions options_;
  size_t next_group_ = 0;
  std::shared_ptr<device::Notifier> told_;
  std::shared_ptr<SetUp> set_up_;
  rdma_event_channel* channel_ = nullptr;  // the set-up's
  // What rdma_cm has said, on the set-up thread.
  std::mutex mutex_;
  std::deque<Request> waiting_;  // these: the mutex
  const rdma_cm_id* listening_ = nullptr;
  bool is_removed_ = false;  // its device
  bool has_moved_ = false;   // that device has another address

  CmId id_;  // null while the device is away
  bool needs_pause_ = false;
  bool was_asked_back_ = false;  // the last request to connect
  Doorkeeper* doorkeeper_ = nullptr;
  const std::shared_ptr<Joinable> joinable_ = std::make_shared<Joinable>();
};

Status VerbsListener::listen() {
  rdma_cm_id* id = nullptr;
  const std::string cannot = "cannot listen on rdma:" + address_;
  if (::rdma_create_id(channel_, &id, static_cast<CmHandler*>(this), RDMA_PS_TCP) != 0) {
    return verbs_error(cannot, errno);
  }
  CmId owned(id);
  if (::rdma_bind_addr(id, resolved_->ai_addr) != 0 || ::rdma_listen(id, kBacklog) != 0) {
    return verbs_error(cannot, errno);
  }
  if (id->verbs != nullptr) {  // not at every address
    if (Status serves = device::check_device(id->verbs); !serves) {
      return Status::error(cannot + ": " + serves.message());
    }
  }
  id_ = std::move(owned);
  const std::scoped_lock held(mutex_);
  listening_ = id;
  return Status::ok();
}

void VerbsListener::on_cm_event(const rdma_cm_event& event) {
  const std::scoped_lock held(mutex_);
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    Request request{.id = CmId(event.id), .data = {.magic = 0}, .reads = event.param.conn.responder_resources};
    const size_t length = std::min<size_t>(event.param.conn.private_data_len, sizeof request.data);
    if (event.param.conn.private_data != nullptr && length >= kLeastConnectData) {
      std::memcpy(&request.data, event.param.conn.private_data, length);
    }
    if (waiting_.size() >= kMostWaiting) {
      ::rdma_reject(event.id, nullptr, 0);
      return;
    }
    waiting_.push_back(std::move(request));
  } else if (event.id == listening_ && event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    is_removed_ = true;
  } else if (event.id == listening_ && event.event == RDMA_CM_EVENT_ADDR_CHANGE) {
    has_moved_ = true;
  } else {
    return;
  }
  told_->notify();
}

// The descriptor stays readable until nothing waits.
std::optional<Request> VerbsListener::take_request() {
  const std::scoped_lock held(mutex_);
  std::optional<Request> next;
  if (!waiting_.empty()) {
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (waiting_.empty() && !is_removed_ && !has_moved_) told_->reset();
  return next;
}

// What rdma_cm has said of the id that listens.
Status VerbsListener::look_at_itself() {
  bool is_removed = false, has_moved = false;
  {
    const std::scoped_lock held(mutex_);
    is_removed = std::exchange(is_removed_, false);
    has_moved = std::exchange(has_moved_, false);
  }
  if (is_removed) {
    // The device waits for its users to let go of it. It, or another with this address, may come back.
    id_.reset();
    return Status::error("rdma:" + address_ + ": the RDMA device is gone");
  }
  if (has_moved) {
    // A bond has failed over, or its address was set anew: this id hears of nobody any more.
    id_.reset();
    if (Status again = listen(); !again) return again;
    needs_pause_ = false;
    return Status::error("rdma:" + address_ + ": the network device has another hardware address: listening anew");
  }
  return Status::ok();
}

Expected<std::unique_ptr<ServerEndpoint>> VerbsListener::accept_next() {
  needs_pause_ = true;
  if (Status well = look_at_itself(); !well) return well;
  if (id_ == nullptr) {
    if (Status again = listen(); !again) return again;
  }
  needs_pause_ = false;
  std::optional<Request> request = take_request();
  if (!request) return std::unique_ptr<ServerEndpoint>();
  return answer(std::move(request->id), request->data, request->reads);
}

Expected<std::unique_ptr<ServerEndpoint>> VerbsListener::answer(CmId id, const ConnectData& data, uint8_t reads) {
  const auto at = joinable_->find(data.token);
  JoinableSession named;
  if (at != joinable_->end()) {
    named = {
        .peer_group = at->second->peer_group(), .joined = at->second->joined(), .promised = at->second->promised()};
  }
  const ConnectAnswer answer =
      answer_to(data, peer_host(id.get()), at == joinable_->end() ? nullptr : &named, doorkeeper_);
  if (answer == ConnectAnswer::kJoins) return join(*at->second, std::move(id), data, reads);
  const std::string from = "rdma:" + address_ + ": " + peer_name(id.get());
  if (answer == ConnectAnswer::kMakesSession) {
    if (const RejectData later{.come_back_ms = come_back_ms(data, peer_host(id.get()), doorkeeper_)};
        later.come_back_ms != 0) {
      ::rdma_reject(id.get(), &later, sizeof later);
      was_asked_back_ = true;
      return std::unique_ptr<ServerEndpoint>();
    }
    return make_session({std::move(id), data, reads});
  }
  ::rdma_reject(id.get(), nullptr, 0);
  if (answer == ConnectAnswer::kTurnedAway) {
    return Status::error(from + " connects too often, and was turned away");
  }
  if (answer == ConnectAnswer::kOtherProtocol) return Status::error(from + " speaks another protocol or version");
  if (answer == ConnectAnswer::kNotItsOwn) {
    return Status::error(from + " asked to join a session that is not its own");
  }
  return std::unique_ptr<ServerEndpoint>();
}

Expected<std::unique_ptr<ServerEndpoint>> VerbsListener::make_session(Request first) {
  const bool is_grouped = !options_.groups.empty();
  const size_t number = is_grouped ? next_group_++ % options_.groups.size() : 0;
  auto polling = Polling::of(is_grouped ? options_.groups[number] : nullptr);
  if (!polling) return Status::error("rdma:" + address_ + ": " + polling.message());
  if (auto kept = polling.value().queues()->set_up(); !kept) return kept.status();  // the ids' channel is its
  const Joining joining = joining_of(first.data);
  const bool joins_now = joining == Joining::kAtOnce && first.data.queue_pairs > 1;
  auto endpoint = std::make_unique<VerbsServerEndpoint>(
      joinable_, joining, std::move(first), options_, "rdma:" + address_,
      PlaceInGroup{std::move(polling.value()), is_grouped ? static_cast<int>(number) : -1});
  // Its further queue pairs may come as soon as this one is accepted, while another thread would still prepare it.
  if (joins_now) {
    if (Status prepared = endpoint->prepare(); !prepared) {
      endpoint->close();
      return prepared;
    }
  }
  return std::unique_ptr<ServerEndpoint>(std::move(endpoint));
}

// A further queue pair of a session that is being set up.
Expected<std::unique_ptr<ServerEndpoint>> VerbsListener::join(VerbsServerEndpoint& endpoint, CmId id,
                                                              const ConnectData& data, uint8_t reads) {
  const std::string peer = peer_name(id.get());
  if (Status accepted = endpoint.take_over(std::move(id), data, reads); !accepted) {
    endpoint.close();
    return Status::error("rdma:" + address_ + ": " + peer + ": " + accepted.message());
  }
  return std::unique_ptr<ServerEndpoint>();
}

}  // namespace

Expected<std::unique_ptr<Listener>> verbs_listen(const std::string& host_port, const ListenOptions& options) {
  auto parsed = parse_host_port(host_port);
  if (!parsed) return parsed.status();
  auto resolved = resolve(parsed.value(), Resolve::kListen);
  if (!resolved) return resolved.status();
  auto listener = std::make_unique<VerbsListener>(host_port, std::move(resolved.value()), options);
  if (Status listening = listener->begin(); !listening) return listening;
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace egret::transport
