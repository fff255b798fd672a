// The backend's end of the shm transport: listens, makes regions, hears rings, signals deliveries.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/listening.h"
#include "base/slot_copy.h"
#include "transport/shm.h"
#include "transport/shm_common.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;
using namespace shm;

namespace {

// Made of zeroes, of a size that never changes; `extra_seals` once the server has its mapping.
Status make_memory(const char* name, size_t bytes, int protection, unsigned extra_seals, UniqueFd& fd,
                   Mapping& mapping) {
  fd.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return Status::system_error("memfd_create", errno);
  // Allocated now: a page that cannot be had later would be a SIGBUS on the data path.
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    return Status::system_error("cannot allocate a region of " + std::to_string(bytes) + " bytes", error);
  }
  if (Status mapped = mapping.map(fd.get(), bytes, protection); !mapped) return mapped;
  const unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | extra_seals;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) < 0) return Status::system_error("cannot seal a region", errno);
  return Status::ok();
}

// What a client sleeps on: an epoll descriptor that is ready whenever `event` is signalled. The eventfd itself must not
// leave this process: O_NONBLOCK belongs to the open file, so a client that shared it could clear the flag, fill the
// counter, and so stop the partition thread in its next delivery.
UniqueFd watcher_of(int event) {
  UniqueFd watcher(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted{};
  wanted.events = EPOLLIN | EPOLLET;
  if (watcher.is_open() && ::epoll_ctl(watcher.get(), EPOLL_CTL_ADD, event, &wanted) < 0) watcher.reset();
  return watcher;
}

class ShmServerEndpoint final : public ServerEndpoint {
 public:
  ShmServerEndpoint(UniqueFd socket, std::string user, const std::string& process)
      : socket_(std::move(socket)), peer_group_(std::move(user)), peer_(peer_group_ + " " + process) {
    limits_.deliver_is_wakeup = true;
    limits_.ring_is_wakeup = true;
    limits_.fetch_is_local = true;
    limits_.is_ordered = true;
  }

  int control_fd() const override { return socket_.get(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    std::array<UniqueFd, kRegionFds> unwanted;
    return receive(socket_.get(), frame, length, unwanted);
  }
  Status send_frame(std::span<const std::byte> frame, bool attach) override {
    if (!attach) return send(socket_.get(), frame, {});
    const int fds[kRegionFds] = {request_fd_.get(), response_fd_.get(), to_server_.get(), to_client_watcher_.get()};
    if (Status sent = send(socket_.get(), frame, fds); !sent) return sent;
    // They travel once; what is mapped stays mapped, and a session costs three descriptors instead of six.
    for (UniqueFd* given : {&request_fd_, &response_fd_, &to_client_watcher_}) given->reset();
    return Status::ok();
  }
  std::string facts() const override { return "shared memory"; }

  Status create_region(const RegionShape& shape) override {
    shape_ = shape;
    to_server_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    to_client_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!to_server_.is_open() || !to_client_.is_open()) return Status::system_error("eventfd", errno);
    to_client_watcher_ = watcher_of(to_client_.get());
    if (!to_client_watcher_.is_open()) return Status::system_error("epoll_create1", errno);
    if (Status made = make_memory("egret-requests", request_file_bytes(shape), PROT_READ, 0, request_fd_, requests_);
        !made) {
      return made;
    }
    rings_seen_.assign(shape.lanes, 0);
    return make_memory("egret-responses", shape.response_bytes, PROT_READ | PROT_WRITE, F_SEAL_FUTURE_WRITE,
                       response_fd_, responses_);
  }
  const Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::string& peer_group() const override { return peer_group_; }
  const std::byte* request_memory() const override { return requests_.data(); }
  std::byte* response_memory() override { return responses_.data(); }

  int client_cpu() const override {
    return static_cast<int>(base::observe_word(requests_.data() + ring_offset(shape_)) >> kRingCountBits) - 1;
  }

  void deliver(uint32_t, size_t, size_t) override { signal_event(to_client_.get()); }

  size_t poll(std::span<Event> events) override {
    const std::byte* rings = requests_.data() + ring_offset(shape_);
    const uint64_t all = base::observe_word(rings);
    if (all == all_rings_seen_) return 0;
    size_t found = 0;
    for (uint32_t lane = 0; lane < shape_.lanes; ++lane) {
      const uint64_t count = base::observe_word(rings + (1 + size_t{lane}) * sizeof(uint64_t));
      if (count == rings_seen_[lane]) continue;
      if (found == events.size()) return found;  // the rest at the next poll: all_rings_seen_ still differs
      rings_seen_[lane] = count;
      events[found++] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
    }
    all_rings_seen_ = all;
    return found;
  }
  int data_fd() const override { return to_server_.get(); }
  void arm() override {}  // edge-triggered eventfd: nothing to re-arm
  void close() override { ::shutdown(socket_.get(), SHUT_RDWR); }

 private:
  UniqueFd socket_;
  const std::string peer_group_;
  const std::string peer_;
  Limits limits_;
  RegionShape shape_;
  UniqueFd request_fd_, response_fd_, to_client_watcher_;  // until they are sent
  UniqueFd to_server_, to_client_;
  Mapping requests_, responses_;
  // Home's alone.
  uint64_t all_rings_seen_ = 0;
  std::vector<uint64_t> rings_seen_;
};

class ShmListener final : public Listener {
 public:
  ShmListener(UniqueFd socket, std::string path, ListenOptions options)
      : socket_(std::move(socket)), path_(std::move(path)), options_(std::move(options)) {}
  ~ShmListener() override {
    if (path_[0] != '@') ::unlink(path_.c_str());
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
    const std::string user = "uid " + std::to_string(credentials.uid);
    const std::string process = "pid " + std::to_string(credentials.pid);
    if (!is_allowed(credentials.uid)) {
      return Status::error("shm:" + path_ + ": " + user + " " + process + " may not connect (see allowed_uids)");
    }
    if (doorkeeper_ != nullptr && !doorkeeper_->lets_in(user)) {
      return Status::error("shm:" + path_ + ": " + user + " connects too often, and was turned away");
    }
    return std::unique_ptr<ServerEndpoint>(std::make_unique<ShmServerEndpoint>(std::move(peer), user, process));
  }
  bool needs_pause() const override { return needs_pause_; }
  void set_doorkeeper(Doorkeeper* doorkeeper) override { doorkeeper_ = doorkeeper; }
  void allow(const std::vector<uint32_t>& uids) override { options_.allowed_uids = uids; }

 private:
  bool is_allowed(uid_t uid) const {
    return uid == 0 || uid == ::geteuid() ||
           std::ranges::find(options_.allowed_uids, uid) != options_.allowed_uids.end();
  }
  UniqueFd socket_;
  const std::string path_;
  ListenOptions options_;
  Doorkeeper* doorkeeper_ = nullptr;
  bool needs_pause_ = false;
};

}  // namespace

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
  // Anybody may knock; credentials decide, before a byte is read.
  if (path[0] != '@' && ::chmod(path.c_str(), 0666) < 0) return Status::system_error("chmod " + path, errno);
  if (::listen(socket.get(), 128) < 0) return Status::system_error("cannot listen on shm:" + path, errno);
  return std::unique_ptr<Listener>(std::make_unique<ShmListener>(std::move(socket), path, options));
}

}  // namespace egret::transport
