// The proxy's end of the shm transport: connects, maps the region, stores and loads.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/local/closer.h"
#include "base/local/peer_socket.h"
#include "base/slot_copy.h"
#include "transport/shm.h"
#include "transport/shm_common.h"
#include "transport/shm_wakeup.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;
using namespace shm;

namespace {

constexpr uint32_t kReadDepth = 4096;  // staged reads are only remembered
constexpr const char* kUnasked = "the backend sent descriptors that nobody asked for";

// A file that could shrink under us would be a SIGBUS. One that is not allocated would be filled by our mapping it, at
// the expense of this process.
Status check_memory(int fd, size_t bytes) {
  struct stat info {};
  if (::fstat(fd, &info) < 0) return Status::system_error("the backend's region", errno);
  const int seals = ::fcntl(fd, F_GET_SEALS);  // -1 for all that is not a file in memory
  if (static_cast<size_t>(info.st_size) != bytes || seals < 0 || !(seals & F_SEAL_SHRINK)) {
    return Status::error("the backend's region is not of the agreed size, or not sealed");
  }
  if (static_cast<size_t>(info.st_blocks) * 512 < bytes) return Status::error("the backend's region is not allocated");
  return Status::ok();
}

// An epoll, as a backend of 0.1.0 sends it. To wait for one is to call whatever files are in it, so only backends that
// may harm this process anyhow are trusted with that.
bool is_epoll(int fd) {
  char target[64];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)) == "anon_inode:[eventpoll]";
}

// The offer of wire::kLaneRings, from connecting until the grant, which may bring a descriptor for each lane. It is made only
// if this process has descriptors to spare for all offers that are open: sessions may be made in many threads at once.
class RingOffer {
 public:
  // `newest`: a descriptor that was just made, and so has the lowest free number.
  explicit RingOffer(int newest) {
    constexpr rlim_t kSpare = 256;
    const rlim_t offers = open_offers.fetch_add(1, std::memory_order_relaxed) + 1;
    rlimit limit{};
    is_open_ = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
               static_cast<rlim_t>(newest) + offers * kMostLaneRings + kSpare <= limit.rlim_cur;
    if (!is_open_) open_offers.fetch_sub(1, std::memory_order_relaxed);
  }
  RingOffer(const RingOffer&) = delete;
  RingOffer& operator=(const RingOffer&) = delete;
  ~RingOffer() { end(); }
  bool is_open() const { return is_open_; }
  void end() {
    if (std::exchange(is_open_, false)) open_offers.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  static inline std::atomic<rlim_t> open_offers{0};
  bool is_open_ = false;
};

class ShmClientEndpoint final : public ClientEndpoint {
 public:
  ShmClientEndpoint(UniqueFd socket, uid_t backend_uid)
      : socket_(std::move(socket)), backend_uid_(backend_uid), ring_offer_(socket_.get()) {
    limits_ = {.read_depth = kReadDepth,
               .deliver_is_wakeup = true,
               .is_ordered = true,
               .fetch_is_local = true,
               .offers_wake_timers = true,
               .offers_lane_rings = ring_offer_.is_open()};
    reads_.reserve(kReadDepth);
  }
  ~ShmClientEndpoint() override {
    if (!are_checked_) base::close_elsewhere(fds_);
    base::close_peer_socket(std::move(socket_));
  }

  int control_fd() const override { return socket_.get(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    std::vector<UniqueFd> came;
    Status received = receive(socket_.get(), frame, length, came);
    if (came.empty()) return received;
    ring_offer_.end();
    const size_t most = limits_.offers_lane_rings ? kMostRegionFds : size_t{kRegionFds};
    if (!are_checked_ && came.size() >= kRegionFds && came.size() <= most) {
      fds_.swap(came);
      base::close_elsewhere(came);
      return received;
    }
    base::close_elsewhere(came);
    return Status::error(kUnasked);
  }
  Status send_frame(std::span<const std::byte> frame, bool) override { return send(socket_.get(), frame, {}); }

  std::string facts() const override { return facts_of(shape_); }

  Status map_region(const RegionShape& shape) override {
    if (fds_.size() > region_fds(shape)) return Status::error(kUnasked);
    if (fds_.size() < region_fds(shape)) return Status::error("the backend granted a session without its region");
    shape_ = shape;
    if (Status good = check_memory(fds_[kRequestFd].get(), request_file_bytes(shape)); !good) return good;
    if (Status good = check_memory(fds_[kResponseFd].get(), shape.response_bytes); !good) return good;
    if (Status good = take_wakeups(); !good) return good;
    if (Status done = requests_.map(fds_[kRequestFd].get(), request_file_bytes(shape), PROT_READ | PROT_WRITE); !done) {
      return done;
    }
    if (Status done = responses_.map(fds_[kResponseFd].get(), shape.response_bytes, PROT_READ); !done) return done;
    // What is mapped stays mapped, and a session costs three descriptors instead of five.
    for (const RegionFd mapped : {kRequestFd, kResponseFd}) fds_[mapped].reset();
    are_checked_ = true;
    return Status::ok();
  }
  const Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests_.data(); }
  const std::byte* response_image() const override { return responses_.data(); }

  void stage_write(uint32_t, size_t offset, size_t, uint64_t first_word) override {
    base::publish_word(requests_.data() + offset, first_word);
    writes_staged_ = true;
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    stage_write(lane, offset, length, first_word);
    ring(lane);  // its stores come after that of the word
  }
  void stage_read(uint32_t, [[maybe_unused]] size_t offset, [[maybe_unused]] size_t length, uint64_t tag) override {
    EGRET_DCHECK(offset + length <= shape_.response_bytes && reads_.size() < kReadDepth);
    reads_.push_back({.kind = Event::Kind::kFetched, .lane = 0, .tag = tag, .bytes = {}});
  }
  void flush() override {
    // Orders the published requests before what is read next (asleep, want): the server fences the other way round.
    if (writes_staged_) {
      tell_cpu();
      base::full_fence();
    }
    writes_staged_ = false;
  }
  size_t poll(std::span<Event> events) override {
    const size_t count = std::min(events.size(), reads_.size() - reads_done_);
    std::copy_n(reads_.begin() + static_cast<ptrdiff_t>(reads_done_), count, events.begin());
    reads_done_ += count;
    if (reads_done_ == reads_.size()) {
      reads_.clear();
      reads_done_ = 0;
    }
    return count;
  }
  void ring(uint32_t lane) override {
    std::byte* own = requests_.data() + ring_offset(shape_, lane);
    base::publish_word(own, base::observe_word(own) + 1);
    if (shape_.has_lane_rings) {
      tell_cpu();
      return signal_timer(fds_[ring_fd(lane)].get());
    }
    told_cpu_ = ::sched_getcpu();
    count_rings(base::observe_word(requests_.data() + ring_offset(shape_)) + 1);
    if (shape_.has_wake_timers) {
      signal_timer(fds_[kToServerFd].get());
    } else {
      signaller_.signal();
    }
  }
  int data_fd() const override { return fds_[kToClientFd].get(); }
  void arm() override {}
  void close() override {
    ::shutdown(socket_.get(), SHUT_RDWR);
    reads_.clear();
    reads_done_ = 0;
  }

 private:
  // The wake-ups are what was agreed, so that neither signalling nor waiting can block (shm_wakeup.h).
  Status take_wakeups() {
    const int to_server = fds_[kToServerFd].get();
    const int to_client = fds_[kToClientFd].get();
    if (shape_.has_wake_timers) {
      const auto wakeups = std::span(fds_).subspan(kToServerFd);
      if (std::ranges::all_of(wakeups, [](const UniqueFd& fd) { return is_timer(fd.get()); })) return Status::ok();
      return Status::error("the backend's wake-ups are not the timers that it promised");
    }
    if (shape_.has_lane_rings) return Status::error("the backend grants rings of lanes without their timers");
    if (!is_timer(to_client)) {
      const bool is_trusted = backend_uid_ == 0 || backend_uid_ == ::geteuid();
      if (!is_trusted || !is_epoll(to_client)) {
        return Status::error("a backend of version 0.1.0 under another user, or none at all: upgrade it");
      }
    }
    return signaller_.open(to_server);
  }
  // The partition thread may want to run on the same CPU.
  void tell_cpu() {
    const int cpu = ::sched_getcpu();
    if (cpu == told_cpu_) return;
    told_cpu_ = cpu;
    count_rings(base::observe_word(requests_.data() + ring_offset(shape_)));
  }
  void count_rings(uint64_t count) {
    const uint64_t cpu = static_cast<uint64_t>(told_cpu_ + 1) << kRingCountBits;
    const uint64_t counted = count & ((uint64_t{1} << kRingCountBits) - 1);
    base::publish_word(requests_.data() + ring_offset(shape_), cpu | counted);
  }

  UniqueFd socket_;
  const uid_t backend_uid_;
  RingOffer ring_offer_;
  Limits limits_;
  std::vector<UniqueFd> fds_;  // none, or region_fds()
  bool are_checked_ = false;   // they are what they should be
  EventSignaller signaller_;   // of 0.1.0's eventfd
  RegionShape shape_;
  Mapping requests_, responses_;
  bool writes_staged_ = false;
  int told_cpu_ = -1;
  std::vector<Event> reads_;  // staged, not yet handed out from reads_done_ on; never grows past kReadDepth
  size_t reads_done_ = 0;
};

Status cannot_connect(const std::string& path, int error) {
  Status failed = Status::system_error("cannot connect to shm:" + path, error);
  if (error != EACCES) return failed;
  return Status::error(
      failed.message() + " (uid " + std::to_string(::geteuid()) +
      " may not open that socket: it has to be let in by allowed_uids or allowed_gids of a backend, slots_uids or "
      "slots_gids of a proxy, and by the permissions of the folder)");
}

}  // namespace

Expected<std::unique_ptr<ClientEndpoint>> shm_connect(const std::string& path, const ConnectOptions& options) {
  sockaddr_un address{};
  socklen_t length = 0;
  if (Status valid = to_socket_address(path, address, length); !valid) return valid;
  if (base::Closer::of_process().is_full()) {
    return Status::error(
        "shm:" + path +
        ": peers that are not trusted have sent this process descriptors, which it cannot close without "
        "waiting for them; it connects to no local peer any more");
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return Status::system_error("socket", errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    return cannot_connect(path, errno);
  }
  ucred server{};
  socklen_t size = sizeof server;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) < 0) {
    return Status::system_error("the backend's credentials", errno);
  }
  const bool is_trusted = server.uid == 0 || server.uid == ::geteuid() ||
                          std::ranges::find(options.backend_uids, server.uid) != options.backend_uids.end();
  if (!is_trusted) {
    base::close_peer_socket(std::move(socket));
    return Status::error("shm:" + path + " is served by uid " + std::to_string(server.uid) + ", pid " +
                         std::to_string(server.pid) +
                         ", which is neither root, nor our own user, nor one of backend_uids: nothing is sent to it");
  }
  return std::unique_ptr<ClientEndpoint>(std::make_unique<ShmClientEndpoint>(std::move(socket), server.uid));
}

}  // namespace egret::transport
