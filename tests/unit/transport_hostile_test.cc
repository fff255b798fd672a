// What a client may do with the descriptors it is given, and what a backend may not do to its client.
#include <chrono>
#include <csignal>

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "transport/shm.h"
#include "transport_pair.h"

using namespace egret::transport;
using egret::base::observe_word;
using egret::base::UniqueFd;

namespace {

struct Hostile {
  explicit Hostile(const RegionShape& shape = kShape) : listener(listening()), client(*listener, name) {
    client.take_region(shape);
  }
  std::unique_ptr<Listener> listening() {
    auto made = listen("shm:" + name, {});
    REQUIRE(made.is_ok());
    return std::move(made.value());
  }
  int fd(shm::RegionFd which) const { return client.fds[which].get(); }

  std::string name = fresh_name();
  std::unique_ptr<Listener> listener;
  RawClient client;
};

bool maps(int fd, int protection) {
  void* at = ::mmap(nullptr, 4096, protection, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  ::munmap(at, 4096);
  return true;
}

UniqueFd reopened(int fd, int flags) {
  return UniqueFd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags));
}

// A message with as many descriptors as one likes.
ssize_t send_with_fds(int socket, std::string_view text, size_t count) {
  std::vector<int> fds(count, STDERR_FILENO);
  std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
  iovec vector{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * count);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace

TEST_SUITE("what a client may do with a region") {
  TEST_CASE("neither memory can change its size: no read of ours becomes a SIGBUS") {
    Hostile hostile;
    for (const auto which : {shm::kRequestFd, shm::kResponseFd}) {
      for (const int fd : {hostile.fd(which), reopened(hostile.fd(which), O_RDWR).release()}) {
        if (fd < 0) continue;
        CHECK(::ftruncate(fd, 0) != 0);
        CHECK(::ftruncate(fd, 1 << 20) != 0);
        CHECK(::fallocate(fd, 0, 1 << 20, 4096) != 0);
        if (fd != hostile.fd(which)) ::close(fd);
      }
    }
    for (size_t i = 0; i < kShape.request_bytes; i += 64)
      CHECK(observe_word(hostile.client.server->request_memory() + i) == 0);
  }

  TEST_CASE("nobody can add a seal: the client may not take our own rights away") {
    Hostile hostile;
    for (const auto which : {shm::kRequestFd, shm::kResponseFd}) {
      CHECK(::fcntl(hostile.fd(which), F_ADD_SEALS, F_SEAL_WRITE) != 0);
      CHECK(::fcntl(hostile.fd(which), F_ADD_SEALS, F_SEAL_SHRINK) != 0);
    }
  }

  TEST_CASE("the client cannot write response memory by any way in") {
    Hostile hostile;
    const int fd = hostile.fd(shm::kResponseFd);
    CHECK(maps(fd, PROT_READ));
    CHECK_FALSE(maps(fd, PROT_READ | PROT_WRITE));
    CHECK_FALSE(maps(fd, PROT_WRITE));
    CHECK(::pwrite(fd, "x", 1, 0) < 0);
    CHECK(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
    CHECK(::fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) != 0);
    void* at = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    CHECK(::mprotect(at, 4096, PROT_READ | PROT_WRITE) != 0);
    ::munmap(at, 4096);
    const UniqueFd again = reopened(fd, O_RDWR);
    if (again.is_open()) {
      CHECK_FALSE(maps(again.get(), PROT_READ | PROT_WRITE));
      CHECK(::pwrite(again.get(), "x", 1, 0) < 0);
    }
    CHECK_FALSE(reopened(fd, O_RDWR | O_TRUNC).is_open());
    hostile.client.server->response_memory()[0] = std::byte{1};  // ours to write all the same
  }

  TEST_CASE("request memory full of holes reads as zeroes") {
    Hostile hostile;
    const int fd = hostile.fd(shm::kRequestFd);
    REQUIRE(::pwrite(fd, "12345678", 8, 0) == 8);
    const std::byte* seen = hostile.client.server->request_memory();
    CHECK(observe_word(seen) != 0);
    ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192);
    CHECK(observe_word(seen) == 0);
  }

  // In a child, so that one that blocks fails the test instead of hanging it.
  void check_delivers(Hostile & hostile) {
    CHECK(in_child([&] {
            ::alarm(20);
            for (int i = 0; i < 100; ++i) hostile.client.server->deliver(0, 0, 64);
            return 0;
          }) == 0);
  }

  TEST_CASE("a delivery never blocks, whatever the client does to the descriptor it sleeps on") {
    for (const bool has_timers : {false, true}) {
      RegionShape shape = kShape;
      shape.has_wake_timers = has_timers;
      Hostile hostile(shape);
      const int fd = hostile.fd(shm::kToClientFd);
      ::fcntl(fd, F_SETFL, 0);
      const uint64_t almost_full = UINT64_MAX - 1;
      CHECK(::write(fd, &almost_full, sizeof almost_full) < 0);
      const itimerspec never{.it_interval = {}, .it_value = {.tv_sec = 1'000'000, .tv_nsec = 0}};
      ::timerfd_settime(fd, 0, &never, nullptr);
      check_delivers(hostile);
      EdgeWaiter waiter(fd);
      hostile.client.server->deliver(0, 0, 64);
      CHECK(waiter.wakes());
    }
  }

  TEST_CASE("the client gets no epoll of the server's: its own watches are charged to itself") {
    Hostile hostile;
    epoll_event event{};
    CHECK(::epoll_ctl(hostile.fd(shm::kToClientFd), EPOLL_CTL_ADD, hostile.client.socket.get(), &event) < 0);
    CHECK(errno == EINVAL);
  }

  TEST_CASE(
      "memory of a session that has ended counts until its client lets go, and a client that keeps it gets no more") {
    const std::string name = fresh_name();
    auto listener = listen("shm:" + name, {});
    REQUIRE(listener.is_ok());
    std::vector<UniqueFd> kept;
    std::string refusal;
    for (int i = 0; i < 100 && refusal.empty(); ++i) {
      RawClient client(*listener.value(), name);
      if (const auto made = client.server->create_region(kShape); !made) {
        refusal = made.message();
        break;
      }
      REQUIRE(client.server->send_frame(bytes_of("grant"), true).is_ok());
      std::array<std::byte, 64> frame{};
      size_t size = 0;
      REQUIRE(shm::receive(client.socket.get(), frame, size, client.fds).is_ok());
      // The client writes into its requests, and keeps both memories.
      REQUIRE(::pwrite(client.fds[shm::kRequestFd].get(), "x", 1, 0) == 1);
      kept.push_back(std::move(client.fds[shm::kRequestFd]));
      kept.push_back(std::move(client.fds[shm::kResponseFd]));
    }
    CHECK(refusal.find("still has the memory of") != std::string::npos);
    CHECK(listener.value()->kept_bytes() == kept.size() / 2 * kShape.response_bytes);
    struct stat info {};
    REQUIRE(::fstat(kept[0].get(), &info) == 0);
    CHECK_MESSAGE(info.st_blocks == 0, "request memory went back at once");
    // A mapping keeps it, too.
    void* const at = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, kept[1].get(), 0);
    kept.clear();
    CHECK(listener.value()->kept_bytes() == kShape.response_bytes);
    ::munmap(at, 4096);
    CHECK(listener.value()->kept_bytes() == 0);
    RawClient again(*listener.value(), name);
    CHECK(again.server->create_region(kShape).is_ok());
  }

  TEST_CASE("ring counters full of garbage name only lanes that exist") {
    Hostile hostile;
    const size_t offset = shm::ring_offset(kShape);
    std::vector<uint64_t> garbage(1 + kShape.lanes, UINT64_MAX);
    REQUIRE(::pwrite(hostile.fd(shm::kRequestFd), garbage.data(), garbage.size() * 8, static_cast<off_t>(offset)) > 0);
    std::array<Event, 16> events;
    const size_t count = hostile.client.server->poll(events);
    CHECK(count <= kShape.lanes);
    for (size_t i = 0; i < count; ++i) CHECK(events[i].lane < kShape.lanes);
    CHECK(hostile.client.server->poll(events) == 0);
  }
}

TEST_SUITE("what a wake-up may cost") {
  // A client of another user, in a process of its own, that has so many epolls wait for what it sleeps on. With kWorks it
  // sleeps on the last one, and takes the CPU at once for 200 us whenever it is woken.
  enum class Awake { kStops, kWorks };
  struct Crowd {
    explicit Crowd(int epolls, Awake awake = Awake::kStops) {
      auto listening = listen("shm:" + name, {.allowed_uids = {65534}});
      REQUIRE(listening.is_ok());
      listener = std::move(listening.value());
      REQUIRE(::pipe(ready) == 0);
      client = ::fork();
      if (client == 0) ::_exit(run(epolls, awake));
      for (int i = 0; i < 2 && server == nullptr; ++i) {
        REQUIRE(is_readable(listener->fd(), 10'000));
        auto accepted = listener->accept();
        REQUIRE_MESSAGE(accepted.is_ok(), accepted.message());
        server = std::move(accepted.value());
      }
      REQUIRE(server->create_region(kShape).is_ok());
      REQUIRE(server->send_frame(bytes_of("grant"), true).is_ok());
      char done = 0;
      REQUIRE(::read(ready[0], &done, 1) == 1);
    }
    ~Crowd() {
      ::kill(client, SIGKILL);
      ::waitpid(client, nullptr, 0);
      ::close(ready[0]);
      ::close(ready[1]);
    }
    int run(int epolls, Awake awake) const {
      const sched_param before_others{.sched_priority = 1};
      if (awake == Awake::kWorks)
        ::sched_setscheduler(0, SCHED_FIFO, &before_others);  // best effort: a container forbids it
      rlimit room{};
      ::getrlimit(RLIMIT_NOFILE, &room);
      room.rlim_cur = room.rlim_max;
      if (::setrlimit(RLIMIT_NOFILE, &room) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
      auto connected = connect("shm:" + name);
      if (!connected || !is_readable(connected.value()->control_fd(), 10'000)) return 2;
      if (next_frame(*connected.value()) != "grant" || !connected.value()->map_region(kShape)) return 3;
      epoll_event event{};
      int last = -1;
      for (int i = 0; i < epolls; ++i) {
        event.events = EPOLLIN | EPOLLET;
        last = ::epoll_create1(0);
        if (::epoll_ctl(last, EPOLL_CTL_ADD, connected.value()->data_fd(), &event) != 0) return 4;
      }
      if (::write(ready[1], "!", 1) != 1) return 5;
      while (awake == Awake::kWorks && ::epoll_wait(last, &event, 1, -1) >= 0) work();
      ::pause();
      return 0;
    }
    static void work() {
      using Clock = std::chrono::steady_clock;
      for (const auto end = Clock::now() + std::chrono::microseconds(200); Clock::now() < end;) {
      }
    }
    // Whether the server gives it up within so many deliveries.
    bool is_given_up(int deliveries) const {
      std::array<Event, 4> events;
      for (int i = 0; i < deliveries; ++i) {
        server->deliver(0, 0, 64);
        if (server->poll(events) == 1 && events[0].kind == Event::Kind::kClosed) return true;
      }
      return false;
    }

    std::string name = fresh_name();
    int ready[2] = {-1, -1};
    pid_t client = -1;
    std::unique_ptr<Listener> listener;
    std::unique_ptr<ServerEndpoint> server;
  };

  // This thread, and the processes that it forks, have one CPU.
  class OnOneCpu {
   public:
    OnOneCpu() {
      REQUIRE(::sched_getaffinity(0, sizeof before_, &before_) == 0);
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<size_t>(::sched_getcpu()), &one);
      REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    }
    ~OnOneCpu() { ::sched_setaffinity(0, sizeof before_, &before_); }

   private:
    cpu_set_t before_{};
  };

  TEST_CASE("a client of another user that has a crowd of epolls wait for it loses its session" *
            doctest::skip(::geteuid() != 0)) {
    const Crowd crowd(15'000);
    CHECK(crowd.is_given_up(1000));
    CHECK(crowd.server->failure().find("too many of its epolls") != std::string::npos);
    std::array<Event, 4> events;
    CHECK_MESSAGE(crowd.server->poll(events) == 0, "it is said once");
  }

  TEST_CASE("a client of another user with one epoll keeps it" * doctest::skip(::geteuid() != 0)) {
    const Crowd crowd(1);
    CHECK_FALSE(crowd.is_given_up(10'000));
  }

  // The client has the server's CPU from the moment it is woken until it sleeps again: each delivery takes 200 us and more
  // by the clock, and next to nothing of the server's own time.
  TEST_CASE("a client of another user that works on the CPU of who wakes it keeps its session" *
            doctest::skip(::geteuid() != 0)) {
    const OnOneCpu here;
    const Crowd crowd(1, Awake::kWorks);
    CHECK_FALSE(crowd.is_given_up(200));
  }
}

TEST_SUITE("what a client may send") {
  TEST_CASE("descriptors are refused by the kernel, or end the peer, and are closed") {
    Hostile hostile;
    const size_t before = open_fds();
    for (const size_t count : {4u, 200u}) {
      Hostile other;
      const ssize_t sent = send_with_fds(other.client.socket.get(), "hello", count);
      if (sent < 0) {
        CHECK(errno == EPERM);
        continue;
      }
      CHECK(next_frame(*other.client.server).starts_with("error: "));
    }
    for (int i = 0; i < 100 && open_fds() > before; ++i) ::usleep(10'000);
    CHECK(open_fds() == before);
  }

  TEST_CASE("a frame larger than any is refused") {
    Hostile hostile;
    const std::string large(513, 'x');
    REQUIRE(::send(hostile.client.socket.get(), large.data(), large.size(), MSG_NOSIGNAL) == 513);
    CHECK(next_frame(*hostile.client.server, 512).starts_with("error: "));
    REQUIRE(::send(hostile.client.socket.get(), large.data(), 512, MSG_NOSIGNAL) == 512);
    CHECK(next_frame(*hostile.client.server, 512).size() == 512);
  }

  TEST_CASE("an empty frame is the end of a peer, not a loop") {
    Hostile hostile;
    REQUIRE(::send(hostile.client.socket.get(), "", 0, MSG_NOSIGNAL) == 0);
    CHECK(next_frame(*hostile.client.server).starts_with("error: "));
  }
}

TEST_SUITE("what a backend may not do to its client") {
  // A backend that hands out descriptors of its own making.
  struct FalseBackend {
    explicit FalseBackend(uid_t served_by = ::geteuid()) {
      sockaddr_un address{};
      socklen_t length = 0;
      REQUIRE(shm::to_socket_address(name, address, length).is_ok());
      socket.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
      // The kernel tells a client which user it was that called listen().
      const uid_t own = ::geteuid();
      REQUIRE(::seteuid(served_by) == 0);
      const int listening = ::listen(socket.get(), 1);
      REQUIRE(::seteuid(own) == 0);
      REQUIRE(listening == 0);
      auto connected = connect("shm:" + name, {.backend_uids = {served_by}});
      REQUIRE(connected.is_ok());
      client = std::move(connected.value());
      peer.reset(::accept(socket.get(), nullptr, nullptr));
    }
    void grant(int requests, int responses) { grant(requests, responses, timer.get(), timer.get()); }
    void grant(int requests, int responses, int to_server, int to_client) {
      const int fds[shm::kRegionFds] = {requests, responses, to_server, to_client};
      REQUIRE(shm::send(peer.get(), bytes_of("grant"), fds).is_ok());
      REQUIRE(next_frame(*client) == "grant");
    }
    std::string name = fresh_name();
    UniqueFd socket, peer;
    UniqueFd timer{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    // As version 0.1.0 makes them.
    UniqueFd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
    std::unique_ptr<ClientEndpoint> client;
  };

  UniqueFd memory(size_t bytes, int seals) {
    UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) == 0);
    REQUIRE(::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
    return fd;
  }

  TEST_CASE("memory that could shrink under the client is refused") {
    FalseBackend backend;
    const UniqueFd sealed_requests = memory(shm::request_file_bytes(kShape), F_SEAL_SHRINK);
    const UniqueFd sealed_responses = memory(kShape.response_bytes, F_SEAL_SHRINK);
    const UniqueFd requests = memory(shm::request_file_bytes(kShape), 0);
    const UniqueFd responses = memory(kShape.response_bytes, F_SEAL_GROW);
    backend.grant(requests.get(), sealed_responses.get());
    CHECK_FALSE(backend.client->map_region(kShape).is_ok());
    backend.grant(sealed_requests.get(), responses.get());
    CHECK_FALSE(backend.client->map_region(kShape).is_ok());
    backend.grant(sealed_requests.get(), sealed_responses.get());
    CHECK(backend.client->map_region(kShape).is_ok());
  }

  TEST_CASE("a file that is no memfd is refused, whatever its size") {
    FalseBackend backend;
    const Folder folder;
    const UniqueFd file(::open((folder.path + "/file").c_str(), O_RDWR | O_CREAT, 0600));
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(shm::request_file_bytes(kShape))) == 0);
    const UniqueFd responses = memory(kShape.response_bytes, F_SEAL_SHRINK);
    backend.grant(file.get(), responses.get());
    CHECK_FALSE(backend.client->map_region(kShape).is_ok());
    backend.grant(STDIN_FILENO, responses.get());
    CHECK_FALSE(backend.client->map_region(kShape).is_ok());
  }

  TEST_CASE("memory that is not allocated is refused: the client would fill it") {
    FalseBackend backend;
    const UniqueFd requests = memory(shm::request_file_bytes(kShape), F_SEAL_SHRINK);
    const UniqueFd holes(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(holes.get(), static_cast<off_t>(kShape.response_bytes)) == 0);
    REQUIRE(::fcntl(holes.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    backend.grant(requests.get(), holes.get());
    const auto mapped = backend.client->map_region(kShape);
    REQUIRE_FALSE(mapped.is_ok());
    CHECK(mapped.message().find("not allocated") != std::string::npos);
  }

  TEST_CASE("what it is to be rung by is what it should be, whatever the handshake agreed on") {
    const UniqueFd requests = memory(shm::request_file_bytes(kShape), F_SEAL_SHRINK);
    const UniqueFd responses = memory(kShape.response_bytes, F_SEAL_SHRINK);
    int pipes[2];
    REQUIRE(::pipe(pipes) == 0);
    const UniqueFd read_end(pipes[0]);
    const UniqueFd write_end(pipes[1]);
    const UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    for (const bool has_timers : {false, true}) {
      CAPTURE(has_timers);
      RegionShape shape = kShape;
      shape.has_wake_timers = has_timers;
      FalseBackend backend;
      const auto is_refused = [&](int to_server, int to_client) {
        backend.grant(requests.get(), responses.get(), to_server, to_client);
        return !backend.client->map_region(shape).is_ok();
      };
      const int good_server = has_timers ? timer.get() : backend.event.get();
      const int good_client = has_timers ? timer.get() : backend.epoll.get();
      for (const int bad : {write_end.get(), read_end.get(), requests.get(), STDERR_FILENO}) {
        CHECK(is_refused(bad, good_client));
        CHECK(is_refused(good_server, bad));
      }
      if (has_timers) CHECK(is_refused(backend.event.get(), good_client));
      CHECK_FALSE(is_refused(good_server, good_client));
    }
  }

  TEST_CASE("rings of lanes are timers, as many as there are lanes, and never without those of the handshake") {
    RegionShape shape = kShape;
    shape.has_lane_rings = true;
    const UniqueFd requests = memory(shm::request_file_bytes(shape), F_SEAL_SHRINK);
    const UniqueFd responses = memory(shape.response_bytes, F_SEAL_SHRINK);
    FalseBackend backend;
    const int timer = backend.timer.get();
    const auto is_taken = [&](const std::vector<int>& further) {
      std::vector<int> fds{requests.get(), responses.get(), timer, timer};
      fds.insert(fds.end(), further.begin(), further.end());
      REQUIRE(shm::send(backend.peer.get(), bytes_of("grant"), fds).is_ok());
      REQUIRE(next_frame(*backend.client) == "grant");
      return backend.client->map_region(shape).is_ok();
    };
    for (const auto& bad : std::vector<std::vector<int>>{{},
                                                         {timer},
                                                         {timer, timer, timer},
                                                         {timer, STDERR_FILENO},
                                                         {backend.event.get(), timer},
                                                         {backend.epoll.get(), timer}}) {
      CHECK_FALSE(is_taken(bad));
    }
    shape.has_wake_timers = false;
    CHECK_FALSE(is_taken({timer, timer}));
    shape.has_wake_timers = true;
    CHECK(is_taken({timer, timer}));
    for (uint32_t lane = 0; lane < shape.lanes; ++lane) backend.client->ring(lane);
  }

  TEST_CASE("an epoll to wait for is taken from root and our own user only, not from those of backend_uids" *
            doctest::skip(::geteuid() != 0)) {
    const UniqueFd requests = memory(shm::request_file_bytes(kShape), F_SEAL_SHRINK);
    const UniqueFd responses = memory(kShape.response_bytes, F_SEAL_SHRINK);
    for (const uid_t user : {uid_t{0}, uid_t{65534}}) {
      CAPTURE(user);
      FalseBackend backend(user);
      RegionShape shape = kShape;
      shape.has_wake_timers = false;
      backend.grant(requests.get(), responses.get(), backend.event.get(), backend.epoll.get());
      CHECK(backend.client->map_region(shape).is_ok() == (user == 0));
    }
  }

  TEST_CASE("a ring never blocks, however full the backend has made what it is rung by") {
    const UniqueFd requests = memory(shm::request_file_bytes(kShape), F_SEAL_SHRINK);
    const UniqueFd responses = memory(kShape.response_bytes, F_SEAL_SHRINK);
    const UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    for (const bool has_timers : {false, true}) {
      CAPTURE(has_timers);
      RegionShape shape = kShape;
      shape.has_wake_timers = has_timers;
      FalseBackend backend;
      const int to_server = has_timers ? timer.get() : backend.event.get();
      backend.grant(requests.get(), responses.get(), to_server, has_timers ? timer.get() : backend.epoll.get());
      REQUIRE(backend.client->map_region(shape).is_ok());
      EdgeWaiter waiter(to_server);
      while (waiter.wakes()) {
      }
      backend.client->ring(0);
      CHECK(waiter.wakes());
      const uint64_t almost_full = UINT64_MAX - 2;
      ::eventfd_t count = 0;
      if (!has_timers) {
        ::eventfd_read(to_server, &count);
        REQUIRE(::eventfd_write(to_server, almost_full) == 0);
      }
      ::fcntl(to_server, F_SETFL, 0);
      ::alarm(20);  // ends a test that blocks
      for (int i = 0; i < 100; ++i) backend.client->ring(0);
      ::alarm(0);
    }
  }
}

TEST_SUITE("who may connect") {
  TEST_CASE("a socket file is no wider than who may connect") {
    CHECK(shm_socket_mode({}) == 0600);
    CHECK(shm_socket_mode({.allowed_uids = {33}}) == 0666);
  }

  TEST_CASE("a client says nothing to a socket that another user serves, unless that is allowed" *
            doctest::skip(::geteuid() != 0)) {
    const std::string name = fresh_name();
    const pid_t server = ::fork();
    if (server == 0) {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
      auto listening = listen("shm:" + name, {});
      ::pause();
      ::_exit(0);
    }
    std::string why;
    for (int i = 0; i < 500 && why.find("uid 65534") == std::string::npos; ++i) {
      const auto connected = connect("shm:" + name);
      if (connected.is_ok()) break;  // said below, when the child is gone
      why = connected.message();
      ::usleep(10'000);
    }
    CHECK(why.find("is served by uid 65534") != std::string::npos);
    CHECK(why.find("backend_uids") != std::string::npos);
    CHECK(connect("shm:" + name, {.backend_uids = {65534}}).is_ok());
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
  }

  constexpr uid_t kStranger = 65534;

  int connect_as_stranger(const std::string& address) {
    return in_child([&] {
      if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) return 2;
      auto connected = connect(address);  // root serves: nobody doubts that
      if (!connected) return 3;
      // Stays until it is accepted or thrown out.
      is_readable(connected.value()->control_fd(), 2000);
      return next_frame(*connected.value()).starts_with("error: ") ? 4 : 0;
    });
  }

  TEST_CASE("a stranger is turned away before a byte is read, unless allowed" * doctest::skip(::geteuid() != 0)) {
    for (const bool allowed : {false, true}) {
      CAPTURE(allowed);
      const Folder folder;
      for (const std::string& address : {"shm:" + fresh_name(), "shm:" + folder.path + "/socket"}) {
        CAPTURE(address);
        ListenOptions options;
        if (allowed) options.allowed_uids = {1, kStranger};
        auto listening = listen(address, options);
        REQUIRE(listening.is_ok());
        std::string turned_away;
        std::string peer;
        const pid_t server = ::fork();
        if (server == 0) {
          is_readable(listening.value()->fd(), 3000);
          auto accepted = listening.value()->accept();
          if (!accepted)
            ::_exit(accepted.message().find("uid 65534") != std::string::npos &&
                            accepted.message().find("allowed_uids") != std::string::npos
                        ? 10
                        : 11);
          if (accepted.value() == nullptr) ::_exit(12);
          const bool said = accepted.value()->send_frame(bytes_of("welcome"), false).is_ok();
          ::_exit(said && accepted.value()->peer().starts_with("uid 65534 ") ? 20 : 21);
        }
        // A path is not for strangers to open at all; behind an abstract name the listener turns them away.
        const bool meets_listener = allowed || address[4] == '@';
        CHECK(connect_as_stranger(address) == (allowed ? 0 : meets_listener ? 4 : 3));
        if (!meets_listener) {
          ::kill(server, SIGKILL);
          ::waitpid(server, nullptr, 0);
          continue;
        }
        int status = 0;
        REQUIRE(::waitpid(server, &status, 0) == server);
        CHECK(WEXITSTATUS(status) == (allowed ? 20 : 10));
      }
    }
  }
}
