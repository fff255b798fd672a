#include "network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/slot_copy.h"

namespace egret::sim {

using base::Expected;
using base::Status;
using transport::Event;

namespace {
constexpr size_t kLine = 64;
Network* newest = nullptr;

// Region memory: 64-byte aligned, zeroed.
struct LineAligned {
  alignas(kLine) std::byte bytes[kLine];
};
using Memory = std::vector<LineAligned>;
Memory make_memory(size_t bytes) {
  return Memory((bytes + kLine - 1) / kLine);
}
std::byte* data(Memory& memory) {
  return memory.empty() ? nullptr : memory[0].bytes;
}
}  // namespace

// A posted verb. kStarting ones have sampled or placed nothing yet.
struct Verb {
  enum class Kind : uint8_t { kWrite, kRead, kRing };
  Kind kind = Kind::kWrite;
  size_t offset = 0;
  size_t length = 0;
  uint64_t first_word = 0;
  uint64_t tag = 0;
  uint32_t lane = 0;
  bool rings = false;  // a write
  uint64_t not_before_ns = 0;
  bool asked_to_stall = false;
  std::vector<uint32_t> lines_left{};  // numbers of lines of memory, in the order in which they go (last first)
  std::vector<std::byte> sampled{};    // read: what it saw
  bool started = false;

  bool is_done() const { return started && lines_left.empty(); }
  bool overlaps(const Verb& other) const {
    return offset < other.offset + other.length && other.offset < offset + length;
  }
};

struct Delivery {
  uint32_t lane = 0;
  size_t offset = 0;
  size_t length = 0;
  std::vector<uint32_t> lines_left;
};

struct StoredWord {
  size_t offset;
  uint64_t word;
};

// One connection: both memories and everything under way. Shared by its two ends; each may go first.
struct Link {
  Network* network = nullptr;
  std::string address;
  Flavour flavour = Flavour::kVerbs;
  Network::Cut cut_off;  // its path is cut
  bool broken = false;   // the client's queue pair has given up
  transport::RegionShape shape;
  Memory requests, responses;            // the region
  Memory request_image, response_image;  // the client's (verbs)
  std::deque<Verb> verbs;                // posted, in order
  std::vector<Verb> staged;
  std::deque<StoredWord> store_buffer;  // shm
  std::deque<Delivery> deliveries;
  std::vector<std::vector<std::byte>> reply_slots;
  std::deque<std::vector<std::byte>> to_server_frames, to_client_frames;
  std::deque<Event> client_events, server_events;
  bool client_open = true, server_open = true;
  bool region_sent = false, mapped = false;
  bool client_armed = false, server_armed = false;
  bool client_wake = false, server_wake = false;
  std::vector<bool> lane_wakes;                   // where each lane has a ring, instead of server_wake
  std::vector<transport::FlushServer*> at_flush;  // kLocal, by lane; null: another thread serves it
  bool closed_told_client = false;
  uint32_t home = 0;

  bool is_shm() const { return flavour == Flavour::kShm || is_local(); }  // one memory
  bool is_local() const { return flavour == Flavour::kLocal; }
  bool is_stream() const { return flavour == Flavour::kTcp; }
  bool is_idle() const { return verbs.empty() && deliveries.empty() && store_buffer.empty(); }
  // As the other side can tell.
  bool is_server_gone() const { return !server_open && !cut_off.to_client; }
  bool is_client_gone() const { return !client_open && !cut_off.to_server; }
  // Verbs that are dropped by the end of either side complete nowhere.
  void cut() {
    verbs.clear();
    staged.clear();
    store_buffer.clear();
    deliveries.clear();
  }
  void wake_client() {
    if (is_shm() || is_stream() || client_armed) client_wake = true;
    client_armed = false;
  }
  void wake_server() {
    if (is_shm() || is_stream() || server_armed) server_wake = true;
    server_armed = false;
  }
};

namespace {

Status receive(std::deque<std::vector<std::byte>>& frames, bool peer_open, std::span<std::byte> frame, size_t& length) {
  length = 0;
  if (frames.empty()) return peer_open ? Status::ok() : Status::error("the peer is gone");
  EGRET_CHECK(frames.front().size() <= frame.size());
  length = frames.front().size();
  std::ranges::copy(frames.front(), frame.begin());
  frames.pop_front();
  return Status::ok();
}

size_t take_events(std::deque<Event>& queue, std::span<Event> events) {
  const size_t count = std::min(queue.size(), events.size());
  std::copy_n(queue.begin(), count, events.begin());
  queue.erase(queue.begin(), queue.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

}  // namespace

class ClientEnd final : public transport::ClientEndpoint {
 public:
  explicit ClientEnd(std::shared_ptr<Link> link) : link_(std::move(link)), network_(*link_->network) {
    const bool shm = link_->is_shm();
    limits_ = {
        .read_depth = shm ? 4096 : network_.options().read_depth, .deliver_is_wakeup = shm, .fetch_is_local = shm};
    limits_.offers_lane_rings = shm && !link_->is_local() && network_.options().lane_rings;
    limits_.is_ordered = limits_.ring_is_wakeup = limits_.is_one_process = link_->is_local();
    if (link_->is_stream()) limits_ = {.is_ordered = true, .results_are_pushed = true};
    network_.by_fd_[fd_] = link_.get();
    network_.next_fd_ += 2;
  }
  ~ClientEnd() override {
    network_.by_fd_.erase(fd_);
    close();
  }

  int control_fd() const override { return fd_; }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    length = 0;
    if (link_->cut_off.to_client) return Status::ok();
    return receive(link_->to_client_frames, link_->server_open, frame, length);
  }
  Status send_frame(std::span<const std::byte> frame, bool) override {
    if (link_->is_server_gone()) return Status::error("the peer is gone");
    link_->to_server_frames.emplace_back(frame.begin(), frame.end());
    return Status::ok();
  }
  Status map_region(const transport::RegionShape& shape) override {
    const transport::RegionShape& made = link_->shape;
    if (!link_->region_sent || shape.request_bytes != made.request_bytes ||
        shape.response_bytes != made.response_bytes || shape.has_lane_rings != made.has_lane_rings) {
      return Status::error("the region is not of the agreed size");
    }
    if (!link_->is_shm()) {
      link_->request_image = make_memory(shape.request_bytes);
      link_->response_image = make_memory(shape.response_bytes);
    }
    link_->mapped = true;
    return Status::ok();
  }
  const transport::Limits& limits() const override { return limits_; }

  std::byte* request_image() override { return data(link_->is_shm() ? link_->requests : link_->request_image); }
  const std::byte* response_image() const override {
    return data(link_->is_shm() ? link_->responses : link_->response_image);
  }
  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    EGRET_CHECK(link_->mapped && offset % 8 == 0 && length >= 8 && offset + length <= link_->shape.request_bytes);
    network_.preempt();
    if (link_->is_local() && link_->at_flush[lane] != nullptr) {
      base::publish_word(data(link_->requests) + offset, first_word);
      if (std::ranges::find(written_servers_, link_->at_flush[lane]) == written_servers_.end()) {
        written_servers_.push_back(link_->at_flush[lane]);
      }
      return;
    }
    if (link_->is_shm()) return link_->store_buffer.push_back({offset, first_word});
    link_->staged.push_back(
        {.kind = Verb::Kind::kWrite, .offset = offset, .length = length, .first_word = first_word, .lane = lane});
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    stage_write(lane, offset, length, first_word);
    if (link_->is_shm()) return ring(lane);
    link_->staged.back().rings = true;
  }
  void stage_read(uint32_t, size_t offset, size_t length, uint64_t tag) override {
    EGRET_CHECK(link_->mapped && length > 0 && offset + length <= link_->shape.response_bytes);
    EGRET_CHECK(!link_->is_stream());
    if (link_->is_shm()) {
      link_->client_events.push_back({.kind = Event::Kind::kFetched, .lane = 0, .tag = tag, .bytes = {}});
      return;
    }
    EGRET_CHECK(++reads_ <= limits_.read_depth);
    network_.counters_.most_reads = std::max(network_.counters_.most_reads, reads_);
    std::memset(data(link_->response_image) + offset, 0xA5, length);  // the range is the transport's
    link_->staged.push_back({.kind = Verb::Kind::kRead, .offset = offset, .length = length, .tag = tag});
  }
  void flush() override {
    network_.preempt();
    drain_store_buffer();
    for (Verb& verb : link_->staged) link_->verbs.push_back(std::move(verb));
    link_->staged.clear();
    if (!link_->server_open || link_->broken) link_->cut();
    network_.preempt();
    for (transport::FlushServer* const server : std::exchange(written_servers_, {})) server->on_flush();
  }
  size_t poll(std::span<Event> events) override {
    network_.preempt();
    if (link_->is_stream() && !is_ready_) return 0;
    const size_t count = take_events(link_->client_events, events);
    is_ready_ = count == events.size();
    for (Event& event : events.first(count)) {
      if (event.kind == Event::Kind::kFetched && !link_->is_shm()) --reads_;
    }
    const bool is_over = link_->is_server_gone() || link_->broken;
    if (count < events.size() && !link_->is_shm() && is_over && !link_->closed_told_client) {
      link_->closed_told_client = true;
      events[count] = {.kind = Event::Kind::kClosed, .lane = 0, .tag = 0, .bytes = {}};
      return count + 1;
    }
    return count;
  }
  op::DirectStore* direct_store(uint32_t lane) override {
    const bool is_own = link_->is_local() && link_->mapped && link_->at_flush[lane] != nullptr;
    return is_own ? link_->at_flush[lane]->direct_store() : nullptr;
  }
  void ring(uint32_t lane) override {
    if (link_->is_shm()) drain_store_buffer();  // stores are seen in order
    if (link_->is_local()) return ring_at_once(lane);
    drain_staged_writes();
    link_->verbs.push_back({.kind = Verb::Kind::kRing, .lane = lane});
  }
  int data_fd() const override { return fd_ + 1; }
  void ready() override { is_ready_ = true; }
  void arm() override {
    network_.preempt();
    link_->client_armed = true;
  }
  void close() override {
    link_->client_open = false;
    link_->client_events.clear();
    written_servers_.clear();
    link_->cut();
  }

  const std::shared_ptr<Link>& link() const { return link_; }

 private:
  // A ring is posted at once; what was staged before it goes before it.
  void drain_staged_writes() {
    for (Verb& verb : link_->staged) link_->verbs.push_back(std::move(verb));
    link_->staged.clear();
  }
  void ring_at_once(uint32_t lane) {
    ++network_.counters_.rings;
    link_->server_events.push_back({.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}});
    transport::FlushServer* const of_home = link_->at_flush[link_->home];
    if (of_home != nullptr) return of_home->on_ring();
    link_->wake_server();
  }
  void drain_store_buffer() {
    for (const StoredWord& word : link_->store_buffer)
      base::publish_word(data(link_->requests) + word.offset, word.word);
    link_->store_buffer.clear();
  }

  const std::shared_ptr<Link> link_;
  Network& network_;
  const int fd_ = network_.next_fd_;
  transport::Limits limits_;
  std::vector<transport::FlushServer*> written_servers_;
  uint32_t reads_ = 0;     // staged and not handed out
  bool is_ready_ = false;  // the stream was said to have something
};

class ServerEnd final : public transport::ServerEndpoint, private transport::SameProcess {
 public:
  explicit ServerEnd(std::shared_ptr<Link> link) : link_(std::move(link)), network_(*link_->network) {
    const bool shm = link_->is_shm();
    limits_ = {.read_depth = 0, .deliver_is_wakeup = shm, .fetch_is_local = shm};
    limits_.is_ordered = limits_.ring_is_wakeup = limits_.is_one_process = link_->is_local();
    if (link_->is_local()) limits_.same_process = this;
    if (link_->is_stream()) limits_ = {.is_ordered = true, .ring_is_wakeup = true, .results_are_pushed = true};
  }
  ~ServerEnd() override { close(); }

  int control_fd() const override { return -1; }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    length = 0;
    if (link_->cut_off.to_server) return Status::ok();
    return receive(link_->to_server_frames, link_->client_open, frame, length);
  }
  Status send_frame(std::span<const std::byte> frame, bool attach) override {
    if (link_->is_client_gone()) return Status::error("the peer is gone");
    link_->to_client_frames.emplace_back(frame.begin(), frame.end());
    link_->region_sent |= attach;
    return Status::ok();
  }
  Status create_region(const transport::RegionShape& shape) override {
    link_->shape = shape;
    link_->requests = make_memory(shape.request_bytes);
    link_->responses = make_memory(shape.response_bytes);
    limits_.has_lane_rings = shape.has_lane_rings;
    link_->lane_wakes.assign(shape.lanes, false);
    link_->at_flush.assign(shape.lanes, nullptr);
    link_->reply_slots.assign(shape.response_bytes / shape.reply_bytes, std::vector<std::byte>(shape.reply_bytes));
    return Status::ok();
  }
  const transport::Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::byte* request_memory() const override {
    network_.preempt();
    return data(link_->requests);
  }
  std::byte* response_memory() override {
    network_.preempt();
    return data(link_->responses);
  }
  void deliver(uint32_t lane, size_t offset, size_t length) override {
    if (!link_->client_open) return;
    if (link_->is_local() && is_clients_thread() && link_->at_flush[lane] != nullptr) return;
    ++network_.counters_.deliveries;
    if (link_->is_shm()) {
      link_->client_wake = true;
      return;
    }
    EGRET_CHECK(link_->home == network_.acting_partition);
    EGRET_CHECK(offset + length <= link_->shape.response_bytes && length <= link_->shape.reply_bytes);
    link_->deliveries.push_back({.lane = lane, .offset = offset, .length = length, .lines_left = {}});
    link_->deliveries.back().lines_left =
        link_->is_stream() ? Network::lines_of_stream(offset, length) : network_.shuffled_lines(offset, length);
  }
  size_t poll(std::span<Event> events) override {
    EGRET_CHECK(link_->home == network_.acting_partition);
    const size_t count = take_events(link_->server_events, events);
    network_.preempt();
    return count;
  }
  size_t poll_lane(uint32_t lane, std::span<Event> events) override {
    EGRET_CHECK(lane == network_.acting_partition && limits_.has_lane_rings);
    const size_t rings = std::erase_if(link_->server_events, [&](const Event& event) { return event.lane == lane; });
    if (rings > 0) events[0] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
    network_.preempt();
    return rings > 0 ? 1 : 0;
  }
  int data_fd() const override { return -1; }
  void arm() override {
    network_.preempt();
    link_->server_armed = true;
  }
  void close() override {
    if (!link_->server_open) return;
    link_->server_open = false;
    link_->cut();
    link_->client_wake = true;
  }

  const std::shared_ptr<Link>& link() const { return link_; }

 private:
  // --- kLocal: the number of the client, and so of its worker, ends its address
  uint32_t worker() const {
    return static_cast<uint32_t>(std::stoul(link_->address.substr(link_->address.find(':') + 1)));
  }
  bool is_clients_thread() const override { return network_.acting_partition % network_.options().workers == worker(); }
  int home() const override { return static_cast<int>(worker() % link_->shape.lanes); }
  void serve_at_flush(uint32_t lane, transport::FlushServer* server) override {
    EGRET_CHECK(is_clients_thread());
    link_->at_flush[lane] = server;
  }

  const std::shared_ptr<Link> link_;
  Network& network_;
  transport::Limits limits_;
  const std::string peer_ = "simulated";
};

// --- the network ---------------------------------------------------------------------------------------------------

Network::Network(const NetworkOptions& options, const base::Clock& clock, Rng& rng)
    : options_(options), clock_(clock), rng_(rng) {
  newest = this;
}

Network::~Network() {
  newest = nullptr;
}

Expected<std::unique_ptr<transport::ClientEndpoint>> Network::connect(const std::string& address,
                                                                      const transport::ConnectOptions&) {
  EGRET_CHECK(newest != nullptr);
  const std::string server = address.substr(0, address.find('@'));
  const Cut cut = newest->cut_of(address);
  const bool answers = !cut.to_server && !cut.to_client;
  if (newest->refuse_ || (answers && newest->refusing_.contains(server))) return Status::error("connection refused");
  auto link = std::make_shared<Link>();
  link->network = newest;
  link->address = address;
  link->flavour = address.starts_with("shm:") ? Flavour::kShm : newest->flavour_of(address);
  link->cut_off = cut;
  newest->links_.push_back(link);
  newest->connecting_.push_back(link);
  return std::unique_ptr<transport::ClientEndpoint>(std::make_unique<ClientEnd>(std::move(link)));
}

std::unique_ptr<transport::ServerEndpoint> Network::accept(const std::string& server) {
  // A client that went before it was let in was never here.
  std::erase_if(connecting_, [](const auto& link) { return !link->client_open; });
  const auto first = std::ranges::find_if(connecting_, [&](const auto& link) {
    return !link->cut_off.to_server && (server.empty() || link->address.starts_with(server + "@"));
  });
  if (first == connecting_.end()) return nullptr;
  auto link = std::move(*first);
  connecting_.erase(first);
  return std::make_unique<ServerEnd>(std::move(link));
}

bool Network::is_anybody_connecting(const std::string& server) const {
  return std::ranges::any_of(connecting_, [&](const auto& link) {
    return link->client_open && !link->cut_off.to_server && link->address.starts_with(server + "@");
  });
}

void Network::refuse_connections(const std::string& server, bool refuse) {
  if (!refuse) {
    refusing_.erase(server);
    return;
  }
  refusing_.insert(server);
  // What waits in its queue is refused, too.
  for (const auto& link : connecting_) {
    if (!link->address.starts_with(server + "@")) continue;
    link->server_open = false;
    link->client_wake = true;
  }
  std::erase_if(connecting_, [](const auto& link) { return !link->server_open; });
}

Network::Cut Network::cut_of(const std::string& address) const {
  const auto at = cuts_.find(address.substr(0, address.find('#')));
  return at == cuts_.end() ? Cut{} : at->second;
}

void Network::cut(const std::string& path, Cut cut) {
  cuts_[path] = cut;
  for (const auto& link : links_) {
    if (link->address.substr(0, link->address.find('#')) != path) continue;
    link->cut_off = cut;
    // What was held back is to be looked at.
    if (!cut.to_client) {
      land_reads(*link);
      link->client_wake = true;
    }
    if (!cut.to_server) link->server_wake = true;
  }
}

void Network::break_clients(const std::string& path) {
  for (const auto& link : links_) {
    if (link->address.substr(0, link->address.find('#')) != path || !link->mapped) continue;
    link->broken = true;
    link->verbs.clear();
    link->client_wake = true;
  }
}

bool Network::is_control_ready(const Link& link) {
  if (!link.client_open || link.cut_off.to_client) return false;
  if (link.is_stream() && link.mapped) return false;  // the socket is the data descriptor's
  return !link.to_client_frames.empty() || !link.server_open;
}

bool Network::is_ready(int fd) const {
  const auto at = by_fd_.find(fd - (fd - kFirstFd) % 2);
  if (at == by_fd_.end()) return false;
  return at->first == fd ? is_control_ready(*at->second) : at->second->client_wake;
}

bool Network::take_ready(int fd) {
  const bool is_ready = this->is_ready(fd);
  if (is_ready && (fd - kFirstFd) % 2 == 1) by_fd_.at(fd - 1)->client_wake = false;
  return is_ready;
}

bool Network::take_wake(transport::ServerEndpoint& endpoint, uint32_t lane) {
  const bool had = has_wake(endpoint, lane);
  Link& link = *static_cast<ServerEnd&>(endpoint).link();
  if (link.shape.has_lane_rings) {
    link.lane_wakes[lane] = false;
  } else {
    link.server_wake = false;
  }
  return had;
}

bool Network::has_wake(transport::ServerEndpoint& endpoint, uint32_t lane) {
  const Link& link = *static_cast<ServerEnd&>(endpoint).link();
  return link.shape.has_lane_rings ? link.lane_wakes[lane] : link.server_wake;
}

bool Network::is_control_ready(transport::ServerEndpoint& endpoint) {
  const Link& link = *static_cast<ServerEnd&>(endpoint).link();
  return !link.cut_off.to_server && (!link.to_server_frames.empty() || !link.client_open);
}

void Network::set_home(transport::ServerEndpoint& endpoint, uint32_t home) {
  static_cast<ServerEnd&>(endpoint).link()->home = home;
}

std::byte* Network::request_memory(transport::ServerEndpoint& endpoint) {
  return data(static_cast<ServerEnd&>(endpoint).link()->requests);
}

bool Network::is_idle() const {
  return std::ranges::none_of(links_, [](const auto& link) { return can_move(*link); });
}

std::vector<uint32_t> Network::shuffled_lines(size_t offset, size_t length) {
  std::vector<uint32_t> lines;
  for (size_t line = offset / kLine; line <= (offset + length - 1) / kLine; ++line) {
    lines.push_back(static_cast<uint32_t>(line));
  }
  for (size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[rng_.below(static_cast<uint32_t>(i))]);
  return lines;
}

Flavour Network::flavour_of(const std::string& address) const {
  if (address.starts_with("rdma:")) return Flavour::kVerbs;
  return address.starts_with("tcp:") ? Flavour::kTcp : options_.flavour;
}

std::vector<uint32_t> Network::lines_of_stream(size_t offset, size_t length) {
  std::vector<uint32_t> lines;
  for (size_t line = offset / kLine; line <= (offset + length - 1) / kLine; ++line) {
    lines.push_back(static_cast<uint32_t>(line));
  }
  return lines;
}

bool Network::step() {
  std::erase_if(links_, [](const auto& link) { return !link->client_open && !link->server_open; });
  if (links_.empty()) return false;
  const size_t first = rng_.below(static_cast<uint32_t>(links_.size()));
  for (size_t i = 0; i < links_.size(); ++i) {
    const std::shared_ptr<Link> link = links_[(first + i) % links_.size()];
    if (can_move(*link)) return step_link(*link);
  }
  return false;
}

bool Network::can_move(const Link& link) {
  if (link.is_idle()) return false;
  if (!link.cut_off.to_server && !link.cut_off.to_client) return true;
  if (link.cut_off.to_server) return !link.cut_off.to_client && !link.deliveries.empty();
  return std::ranges::any_of(link.verbs, [](const Verb& verb) { return !verb.is_done(); });
}

bool Network::step_link(Link& link) {
  if (!link.store_buffer.empty() && rng_.percent(20)) {
    const StoredWord word = link.store_buffer.front();
    link.store_buffer.pop_front();
    base::publish_word(data(link.requests) + word.offset, word.word);
  }
  if (link.cut_off.to_server) return step_delivery(link);
  const bool verb_first =
      link.deliveries.empty() || link.cut_off.to_client || (!link.verbs.empty() && rng_.percent(60));
  if (!verb_first) return step_delivery(link);
  // A few tries to find a verb that may go; finding none is a step in which nothing moves.
  for (uint32_t i = 0; i < 4 && !link.verbs.empty(); ++i) {
    const size_t span = std::min<size_t>(link.verbs.size(), 8);
    if (step_verb(link, rng_.below(static_cast<uint32_t>(span)))) return true;
  }
  if (!link.verbs.empty()) step_verb(link, 0);
  return true;
}

// The ordering rules of a queue pair, as the head of network.h has them.
bool Network::is_eligible(const Link& link, size_t index) const {
  const Verb& verb = link.verbs[index];
  for (size_t i = 0; i < index; ++i) {
    const Verb& earlier = link.verbs[i];
    if (link.is_stream()) return false;
    if (!options_.overtake && !earlier.is_done()) return false;
    if (earlier.kind == Verb::Kind::kRead) continue;
    const bool may_overtake = verb.kind == Verb::Kind::kWrite && !verb.rings;
    const bool is_ring = earlier.kind == Verb::Kind::kRing || earlier.rings;
    if (!may_overtake || is_ring || earlier.overlaps(verb)) return false;
  }
  return true;
}

bool Network::step_verb(Link& link, size_t index) {
  Verb& verb = link.verbs[index];
  if (verb.is_done() || verb.not_before_ns > clock_.now_ns() || !is_eligible(link, index)) return false;
  if (!verb.asked_to_stall) {
    verb.asked_to_stall = true;
    if (rng_.percent(options_.stall_percent)) {
      verb.not_before_ns = clock_.now_ns() + rng_.below(static_cast<uint32_t>(options_.stall_max_ns) + 1);
      return true;
    }
  }
  if (verb.kind == Verb::Kind::kRing) {
    tell_of_ring(link, verb.lane);
    link.verbs.erase(link.verbs.begin() + static_cast<ptrdiff_t>(index));
    return true;
  }
  const bool is_read = verb.kind == Verb::Kind::kRead;
  if (!verb.started) {
    verb.started = true;
    verb.lines_left =
        link.is_stream() ? lines_of_stream(verb.offset, verb.length) : shuffled_lines(verb.offset, verb.length);
    if (is_read) verb.sampled.resize(verb.length);
  }
  const size_t line = verb.lines_left.back();
  verb.lines_left.pop_back();
  const size_t from = std::max(verb.offset, line * kLine);
  const size_t bytes = std::min(verb.offset + verb.length, (line + 1) * kLine) - from;
  if (is_read) {
    std::memcpy(verb.sampled.data() + (from - verb.offset), data(link.responses) + from, bytes);
  } else {
    std::memcpy(data(link.requests) + from, data(link.request_image) + from, bytes);
    if (from == verb.offset) std::memcpy(data(link.requests) + from, &verb.first_word, sizeof verb.first_word);
  }
  if (!verb.is_done()) return true;
  if (is_read) {
    land_reads(link);
  } else {
    ++counters_.writes;
    if (link.is_stream()) {
      link.server_events.push_back({.kind = Event::Kind::kRing, .lane = verb.lane, .tag = 0, .bytes = {}});
      link.wake_server();
    } else if (verb.rings) {
      ++counters_.ringing_writes;
      tell_of_ring(link, verb.lane);
    }
    link.verbs.erase(link.verbs.begin() + static_cast<ptrdiff_t>(index));
  }
  return true;
}

void Network::tell_of_ring(Link& link, uint32_t lane) {
  ++counters_.rings;
  link.server_events.push_back({.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}});
  if (link.shape.has_lane_rings) {
    link.lane_wakes[lane] = true;
  } else {
    link.wake_server();
  }
}

// READs land in the order in which they were posted.
void Network::land_reads(Link& link) {
  while (!link.cut_off.to_client) {
    const auto first = std::ranges::find(link.verbs, Verb::Kind::kRead, &Verb::kind);
    if (first == link.verbs.end() || !first->is_done()) return;
    ++counters_.reads;
    std::ranges::copy(first->sampled, data(link.response_image) + first->offset);
    link.client_events.push_back({.kind = Event::Kind::kFetched, .lane = 0, .tag = first->tag, .bytes = {}});
    link.verbs.erase(first);
  }
}

// Deliveries are the home's WRITEs into reply slots: one after the other, each with its event when it is whole.
bool Network::step_delivery(Link& link) {
  Delivery& delivery = link.deliveries.front();
  const size_t slot = delivery.offset / link.shape.reply_bytes;
  const size_t line = delivery.lines_left.back();
  delivery.lines_left.pop_back();
  const size_t from = std::max(delivery.offset, line * kLine);
  const size_t bytes = std::min(delivery.offset + delivery.length, (line + 1) * kLine) - from;
  if (link.is_stream()) {
    std::memcpy(data(link.response_image) + from, data(link.responses) + from, bytes);
  } else {
    std::memcpy(link.reply_slots[slot].data() + (from - delivery.offset), data(link.responses) + from, bytes);
  }
  if (!delivery.lines_left.empty()) return true;
  const std::byte* const landed =
      link.is_stream() ? data(link.response_image) + delivery.offset : link.reply_slots[slot].data();
  link.client_events.push_back(
      {.kind = Event::Kind::kDelivered, .lane = delivery.lane, .tag = 0, .bytes = {landed, delivery.length}});
  link.deliveries.pop_front();
  link.wake_client();
  return true;
}

}  // namespace egret::sim
