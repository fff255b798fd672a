// The backend's end of the shm transport: listens, creates regions, polls rings, signals deliveries.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <utility>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/local/peer_socket.h"
#include "base/service/listening.h"
#include "base/slot_copy.h"
#include "transport/shm.h"
#include "transport/shm_common.h"
#include "transport/shm_regions.h"
#include "transport/shm_wakeup.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;
using namespace shm;

namespace {

constexpr int kBacklog = 1024;  // connections that wait for accept(): every worker of this host may come at once

// Whether a peer of another user makes its wake-ups dear: each of its epolls that waits for the descriptor costs
// whoever signals it a step. The clock is cheap to read, but where both share a CPU a signal lasts until the woken peer
// sleeps again. So a signal that was long by the clock only has the next ones measured by the thread's CPU time; if several in a
// row are long by that, the wake-ups are too dear.
class WakeupCost {
 public:
  void signal(int timer) {
    const bool is_suspected = dear_in_a_row_.load(std::memory_order_relaxed) > 0;
    const clockid_t clock = is_suspected ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    const uint64_t begun_ns = now_ns(clock);
    signal_timer(timer);
    add(now_ns(clock) - begun_ns, is_suspected);
  }
  // True once. Any thread that takes rings.
  bool take_verdict() {
    return is_too_dear_.load(std::memory_order_relaxed) && !is_told_.exchange(true, std::memory_order_relaxed);
  }

 private:
  // Partitions signal at the same time: what several of them took by the clock is one suspicion.
  void add(uint64_t ns, bool is_suspected) {
    const bool is_dear = ns >= kDearNs;
    if (is_dear != is_suspected) dear_in_a_row_.store(is_dear ? 1 : 0, std::memory_order_relaxed);
    if (!is_dear || !is_suspected) return;
    if (dear_in_a_row_.fetch_add(1, std::memory_order_relaxed) >= kMostInARow)
      is_too_dear_.store(true, std::memory_order_relaxed);
  }
  static uint64_t now_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }

  static constexpr uint64_t kDearNs = 50'000;  // a wake-up takes about one microsecond
  static constexpr uint32_t kMostInARow = 8;   // after the first one, which the clock alone calls dear
  std::atomic<uint32_t> dear_in_a_row_{0};
  std::atomic<bool> is_too_dear_{false};
  std::atomic<bool> is_told_{false};
};

std::string name_of(const PeerUser& user) {
  return "uid " + std::to_string(user.uid);
}

// The groups that the peer's process was in when it connected; its own first.
Status read_groups(int socket, gid_t own, std::vector<uint32_t>& gids) {
  gids.assign(1, own);
  constexpr size_t kMostGroups = 65536;  // NGROUPS_MAX
  std::vector<gid_t> others(64);
  for (;;) {
    socklen_t length = static_cast<socklen_t>(others.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, others.data(), &length) == 0) {
      gids.insert(gids.end(), others.begin(), others.begin() + static_cast<ptrdiff_t>(length / sizeof(gid_t)));
      return Status::ok();
    }
    if (errno != ERANGE || others.size() >= kMostGroups) return Status::system_error("peer groups", errno);
    others.resize(std::min(length / sizeof(gid_t), kMostGroups));
  }
}

class ShmServerEndpoint final : public ServerEndpoint {
 public:
  ShmServerEndpoint(UniqueFd socket, PeerUser user, const std::string& process, std::shared_ptr<KeptRegions> kept)
      : socket_(std::move(socket)),
        user_(std::move(user)),
        peer_group_(name_of(user_)),
        peer_(peer_group_ + " " + process),
        is_another_user_(user_.uid != 0 && user_.uid != ::geteuid()),
        kept_(std::move(kept)) {
    limits_.transport = "shm";
    limits_.deliver_is_wakeup = true;
    limits_.ring_is_wakeup = true;
    limits_.fetch_is_local = true;
    limits_.is_ordered = true;
  }
  ~ShmServerEndpoint() override {
    base::close_peer_socket(std::move(socket_));
    requests_.punch();
    kept_->keep(peer_group_, responses_);
  }

  int control_fd() const override { return socket_.get(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    std::vector<UniqueFd> unwanted;
    Status received = receive(socket_.get(), frame, length, unwanted);
    if (unwanted.empty()) return received;
    base::close_elsewhere(unwanted);
    return Status::error("the peer sent descriptors");
  }
  Status send_frame(std::span<const std::byte> frame, bool attach) override {
    if (!attach) return send(socket_.get(), frame, {});
    std::vector<int> fds{requests_.for_peer().get(), responses_.for_peer().get(), to_server_[0].get(),
                         to_client_.get()};
    for (size_t lane = 1; lane < to_server_.size(); ++lane) fds.push_back(to_server_[lane].get());
    Status sent = send(socket_.get(), frame, fds);
    requests_.sent();
    responses_.sent();
    return sent;
  }
  std::string facts() const override { return facts_of(shape_); }

  Status create_region(const RegionShape& shape) override {
    if (Status room = kept_->has_room(peer_group_); !room) return room;
    if (shape.has_lane_rings && shape.lanes > kMostLaneRings) return Status::error("too many lanes for a ring each");
    shape_ = shape;
    limits_.has_lane_rings = shape.has_lane_rings;
    to_client_ = make_timer();
    bool are_open = to_client_.is_open();
    to_server_ = std::vector<UniqueFd>(shape.has_lane_rings ? shape.lanes : 1);
    for (UniqueFd& ring : to_server_) {
      ring = shape.has_wake_timers ? make_timer() : UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      are_open = are_open && ring.is_open();
    }
    if (!are_open) return Status::system_error("timerfd_create, eventfd", errno);
    if (Status made = requests_.make("egret-requests", request_file_bytes(shape), false); !made) return made;
    rings_seen_ = std::vector<RingsSeen>(shape.lanes);
    return responses_.make("egret-responses", shape.response_bytes, true);
  }
  const Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::string& peer_group() const override { return peer_group_; }
  const PeerUser* user() const override { return &user_; }
  const std::byte* request_memory() const override { return requests_.data(); }
  std::byte* response_memory() override { return responses_.data(); }

  int client_cpu() const override {
    return static_cast<int>(base::observe_word(requests_.data() + ring_offset(shape_)) >> kRingCountBits) - 1;
  }

  void deliver(uint32_t, size_t, size_t) override {
    if (!is_another_user_) return signal_timer(to_client_.get());
    wakeup_cost_.signal(to_client_.get());
  }

  size_t poll(std::span<Event> events) override {
    if (is_too_dear()) {
      events[0] = {};  // kClosed
      return 1;
    }
    if (shape_.has_lane_rings) return 0;
    const std::byte* rings = requests_.data() + ring_offset(shape_);
    const uint64_t all = base::observe_word(rings);
    if (all == all_rings_seen_) return 0;
    size_t found = 0;
    for (uint32_t lane = 0; lane < shape_.lanes; ++lane) {
      const uint64_t count = rings_of(lane);
      if (count == rings_seen_[lane].count) continue;
      if (found == events.size()) return found;  // the rest at the next poll: all_rings_seen_ still differs
      rings_seen_[lane].count = count;
      events[found++] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
    }
    all_rings_seen_ = all;
    return found;
  }
  int lane_fd(uint32_t lane) const override { return to_server_[lane].get(); }
  size_t poll_lane(uint32_t lane, std::span<Event> events) override {
    const uint64_t count = rings_of(lane);
    if (is_too_dear()) {
      events[0] = {};  // kClosed
    } else if (count != rings_seen_[lane].count) {
      rings_seen_[lane].count = count;
      events[0] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
    } else {
      return 0;
    }
    return 1;
  }
  std::string failure() const override {
    return "waking it took too long, again and again: too many of its epolls wait";
  }
  int data_fd() const override { return to_server_[0].get(); }
  void arm() override {}  // edge-triggered: nothing to re-arm
  void close() override { ::shutdown(socket_.get(), SHUT_RDWR); }

 private:
  struct alignas(64) RingsSeen {
    uint64_t count = 0;
  };
  bool is_too_dear() { return is_another_user_ && wakeup_cost_.take_verdict(); }
  uint64_t rings_of(uint32_t lane) const { return base::observe_word(requests_.data() + ring_offset(shape_, lane)); }

  UniqueFd socket_;
  const PeerUser user_;
  const std::string peer_group_;
  const std::string peer_;
  const bool is_another_user_;
  const std::shared_ptr<KeptRegions> kept_;
  Limits limits_;
  RegionShape shape_;
  std::vector<UniqueFd> to_server_ = std::vector<UniqueFd>(1);  // by lane, where each has its own; else one
  UniqueFd to_client_;
  SharedMemory requests_, responses_;
  WakeupCost wakeup_cost_;
  // Only the home partition's thread uses these; where each lane has a ring, its own partition's thread its entry.
  uint64_t all_rings_seen_ = 0;
  std::vector<RingsSeen> rings_seen_;
};

class ShmListener final : public Listener {
 public:
  ShmListener(UniqueFd socket, std::string path, ListenOptions options)
      : socket_(std::move(socket)), path_(std::move(path)), options_(std::move(options)) {}
  ~ShmListener() override {
    if (path_[0] != '@') ::unlink(path_.c_str());
    base::close_listener(std::move(socket_));
  }
  int fd() const override { return socket_.get(); }

  Expected<std::unique_ptr<ServerEndpoint>> accept() override {
    UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    needs_pause_ = false;
    if (!peer.is_open()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return std::unique_ptr<ServerEndpoint>();
      needs_pause_ = true;
      return Status::system_error("accept on shm:" + path_, errno);
    }
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) {
      return Status::system_error("peer credentials", errno);
    }
    PeerUser user{.uid = credentials.uid, .gids = {}};
    if (Status read = read_groups(peer.get(), credentials.gid, user.gids); !read) {
      base::close_peer_socket(std::move(peer));
      return read;
    }
    const std::string process = "pid " + std::to_string(credentials.pid);
    const std::string name = name_of(user);
    if (!is_allowed(user)) {
      base::close_peer_socket(std::move(peer));
      return Status::error("shm:" + path_ + ": " + name + " " + process + " may not connect (see " +
                           options_.allowed_by + ")");
    }
    if (doorkeeper_ != nullptr && !doorkeeper_->lets_in(name)) {
      base::close_peer_socket(std::move(peer));
      return Status::error("shm:" + path_ + ": " + name + " connects too often, and was turned away");
    }
    return std::unique_ptr<ServerEndpoint>(
        std::make_unique<ShmServerEndpoint>(std::move(peer), std::move(user), process, kept_));
  }
  bool needs_pause() const override { return needs_pause_; }
  void set_doorkeeper(Doorkeeper* doorkeeper) override { doorkeeper_ = doorkeeper; }
  size_t kept_bytes() const override { return kept_->bytes(); }
  void allow(const std::vector<uint32_t>& uids, const std::vector<uint32_t>& gids) override {
    options_.allowed_uids = uids;
    options_.allowed_gids = gids;
    if (path_[0] != '@') ::chmod(path_.c_str(), shm_socket_mode(options_));
  }

 private:
  bool is_allowed(const PeerUser& user) const {
    const auto is_in = [](const std::vector<uint32_t>& list, uint32_t id) {
      return std::ranges::find(list, id) != list.end();
    };
    return user.uid == 0 || user.uid == ::geteuid() || is_in(options_.allowed_uids, user.uid) ||
           std::ranges::any_of(user.gids, [&](uint32_t gid) { return is_in(options_.allowed_gids, gid); });
  }
  UniqueFd socket_;
  const std::string path_;
  ListenOptions options_;
  Doorkeeper* doorkeeper_ = nullptr;
  const std::shared_ptr<KeptRegions> kept_ = std::make_shared<KeptRegions>();
  bool needs_pause_ = false;
};

}  // namespace

mode_t shm_socket_mode(const ListenOptions& options) {
  return options.allowed_uids.empty() && options.allowed_gids.empty() ? 0600 : 0666;
}

Expected<std::unique_ptr<Listener>> shm_listen(const std::string& path, const ListenOptions& options) {
  sockaddr_un address{};
  socklen_t length = 0;
  if (Status valid = to_socket_address(path, address, length); !valid) return valid;
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return Status::system_error("socket", errno);
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), raw, length) < 0) {
    if (errno != EADDRINUSE) return Status::system_error("cannot listen on shm:" + path, errno);
    const base::Occupant found = base::remove_stale_socket(address, length, SOCK_SEQPACKET);
    if (found == base::Occupant::kListener) return Status::error("shm:" + path + " is in use by another process");
    if (found == base::Occupant::kOther) {
      return Status::error("shm:" + path + " is in use and not a socket that could be replaced");
    }
    if (::bind(socket.get(), raw, length) < 0) return Status::system_error("cannot listen on shm:" + path, errno);
  }
  // An abstract name has no mode: there anybody may knock, and credentials alone decide.
  if (path[0] != '@' && ::chmod(path.c_str(), shm_socket_mode(options)) < 0) {
    return Status::system_error("chmod " + path, errno);
  }
  base::refuse_descriptors(socket.get());
  if (::listen(socket.get(), kBacklog) < 0) return Status::system_error("cannot listen on shm:" + path, errno);
  return std::unique_ptr<Listener>(std::make_unique<ShmListener>(std::move(socket), path, options));
}

}  // namespace egret::transport
