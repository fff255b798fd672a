#include "client/preload/served_sockets.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "client/api/boundary.h"
#include "client/config/proxy_address.h"
#include "client/preload/real.h"
#include "client/process/fork.h"
#include "client/process/thread.h"
#include "transport/shm_common.h"
#include "wire/slot_twins.h"

namespace egret::preload {

using client::ForkGuard;

namespace {

constexpr const char* kSwitch = "EGRET_PRELOAD";
constexpr const char* kLogVariable = "EGRET_PRELOAD_LOG";  // a file to which lines are appended
constexpr uint64_t kLeftAloneNs = 1'000'000'000;           // a place that does not serve us is not tried again
constexpr uint64_t kMostOpeningNs = 500'000'000;  // for sessions of a socket that connects; else it is left alone
// For what was sent to be done, of all sockets that one call closes, or that are there when the process ends. It should reach the
// backend, as TCP would deliver it; but a client that closes a socket because its own time is up must not wait as long again.
constexpr uint64_t kMostFinishingNs = 100'000'000;

uint64_t finishing_until_ns() {
  return base::SystemClock().now_ns() + kMostFinishingNs;
}

// As client/config/proxy_address.h has it; empty: a kind of address that has no twin.
std::string place_of(const sockaddr* address, socklen_t length) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    const auto& at = *reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
    return "tcp:" + std::string(text) + ":" + std::to_string(ntohs(at.sin_port));
  }
  if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    const auto& at = *reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &at.sin6_addr, text, sizeof text);
    return "tcp:[" + std::string(text) + "]:" + std::to_string(ntohs(at.sin6_port));
  }
  if (address->sa_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path)) return {};
  const auto& at = *reinterpret_cast<const sockaddr_un*>(address);
  const size_t room = length - offsetof(sockaddr_un, sun_path);
  const std::string path(at.sun_path, ::strnlen(at.sun_path, room));
  const bool is_slots = wire::is_twin_of_unix(path);  // a library's session
  return path.starts_with('/') && !is_slots ? "unix:" + path : "";
}

// A bare attempt to connect, before anything is made: this is asked at every connection of the program, to whomever it is.
bool somebody_listens(const std::string& place, std::string& why) {
  why = "no egret-proxy listens for slots there";
  const auto addresses = client::slot_addresses_of(place);
  if (!addresses) return false;
  return std::ranges::any_of(addresses.value(), [&](const std::string& address) {
    sockaddr_un at{};
    socklen_t length = 0;
    if (!transport::shm::to_socket_address(address.substr(address.find(':') + 1), at, length)) return false;
    const base::UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&at), length) == 0) return true;
    if (errno == EACCES) {
      why = "uid " + std::to_string(::geteuid()) + " may not open " + address +
            ": the proxy's slots_uids or slots_gids have to let it in";
    }
    return false;
  });
}

std::string variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

// What the process was begun with: php-fpm empties its children's environment before they connect to anything.
struct Environment {
  const bool is_off = variable(kSwitch) == "off";
  const std::string log = variable(kLogVariable);
  const std::string options = client::named_file();
};

const Environment& environment() {
  static const auto* const at_start = new Environment;
  return *at_start;
}

[[gnu::constructor]] void remember_environment() {
  environment();
}

bool is_stream(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

ServedSockets& ServedSockets::instance() {
  static auto* const made = new ServedSockets;
  return *made;
}

bool ServedSockets::is_switched_off() {
  return environment().is_off;
}

ServedSockets::ServedSockets() {
  client::set_up_process();
  generation_ = ForkGuard::generation();
  pid_ = ::getpid();
  ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().enter_child(); });
  is_off_ = is_switched_off();
  const std::string& path = environment().log;
  if (!path.empty()) log_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

std::shared_ptr<ServedSocket> ServedSockets::find(int fd) {
  const std::lock_guard held(mutex_);
  const auto at = by_fd_.find(fd);
  return at != by_fd_.end() ? at->second : nullptr;
}

// Behind ForkGuard's handler, which was set first.
void ServedSockets::enter_child() {
  generation_ = ForkGuard::generation();
  pid_ = ::getpid();
  mutex_.unlock();
}

bool ServedSockets::is_borrowed() {
  const pid_t pid = ::getpid();
  if (pid == pid_.load(std::memory_order_relaxed)) return false;
  // A child that was made without handlers has memory of its own, too, and another generation.
  ForkGuard::enter_child_if_new();
  if (generation_.load(std::memory_order_relaxed) == ForkGuard::generation()) return true;
  generation_ = ForkGuard::generation();
  pid_ = pid;
  return false;
}

void ServedSockets::take_over(int fd, const sockaddr* address, socklen_t length) {
  if (is_off_ || fd < 0 || fd >= kMostFds || address == nullptr || is_borrowed()) return;
  forget(fd);
  const std::string place = place_of(address, length);
  if (place.empty() || !is_stream(fd)) return;
  std::string why;
  auto engine = somebody_listens(place, why) ? engine_for(place, why) : nullptr;
  if (engine == nullptr) return log("fd " + std::to_string(fd) + ": " + place + " is left alone: " + why);
  auto socket = std::make_shared<ServedSocket>(fd, std::move(engine));
  {
    const std::lock_guard held(mutex_);
    by_fd_[fd] = std::move(socket);
    marks[fd / 64].fetch_or(uint64_t{1} << (fd % 64), std::memory_order_relaxed);
  }
  count.fetch_add(1, std::memory_order_relaxed);
  log("fd " + std::to_string(fd) + ": " + place + " is served by slots");
}

void ServedSockets::forget(int fd) {
  if (has(fd)) forget(fd, finishing_until_ns());
}

void ServedSockets::forget(int fd, uint64_t until_ns) {
  if (!has(fd) || is_borrowed()) return;
  std::shared_ptr<ServedSocket> socket;
  {
    const std::lock_guard held(mutex_);
    const auto at = by_fd_.find(fd);
    if (at == by_fd_.end()) return;
    socket = std::move(at->second);
    by_fd_.erase(at);
    marks[fd / 64].fetch_and(~(uint64_t{1} << (fd % 64)), std::memory_order_relaxed);
  }
  count.fetch_sub(1, std::memory_order_relaxed);
  socket->close(until_ns);
  log("fd " + std::to_string(fd) + ": " + socket->counts());
}

void ServedSockets::forget_range(unsigned first, unsigned last) {
  const uint64_t until_ns = finishing_until_ns();
  for (unsigned fd = first; fd <= last && fd < static_cast<unsigned>(kMostFds); ++fd) {
    forget(static_cast<int>(fd), until_ns);
  }
}

// --- engines

// Null: nobody listens for slots there, or not for us; `why` says it.
std::shared_ptr<ThreadEngine> ServedSockets::engine_for(const std::string& place, std::string& why) {
  if (auto known = known_engine(place)) return known;
  if (is_left_alone(place, why)) return nullptr;
  auto settings = settings_for(place);
  if (!settings) {
    why = settings.message();
    return nullptr;
  }
  auto made = std::make_shared<ThreadEngine>(settings.value());
  client::Engine& engine = made->engine();
  if (const base::Status made_well = engine.status(); !made_well) {
    why = made_well.message();
    return nullptr;
  }
  bool is_open = engine.connect();
  if (!is_open && engine.is_connecting()) {
    engine.wait([&] { return (is_open = engine.connect()) || !engine.is_connecting(); },
                engine.clock().now_ns() + kMostOpeningNs);
    if (!is_open) {
      const std::lock_guard held(mutex_);
      left_alone_ = {place, engine.trouble(), engine.clock().now_ns() + kLeftAloneNs};
    }
  }
  if (!is_open) {
    why = engine.trouble();
    return nullptr;
  }
  keep(made, place);
  return made;
}

base::Expected<client::Settings> ServedSockets::settings_for(const std::string& place) {
  auto given = client::default_options(environment().options);
  if (!given) return given.status();
  client::GivenOptions options = std::move(given.value());
  options.forget("backends");
  if (base::Status set = options.set("proxy", place); !set) return set;
  return options.resolve();
}

// It has just been tried, and cost the program its time.
bool ServedSockets::is_left_alone(const std::string& place, std::string& why) {
  const base::SystemClock clock;
  const std::lock_guard held(mutex_);
  if (left_alone_.place != place || clock.now_ns() >= left_alone_.until_ns) return false;
  why = left_alone_.why;
  return true;
}

void ServedSockets::finish_all() {
  std::vector<std::shared_ptr<ServedSocket>> all;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [fd, socket] : by_fd_) all.push_back(socket);
  }
  const uint64_t until_ns = finishing_until_ns();
  for (const auto& socket : all) socket->finish(until_ns);
}

// This thread's, if its sessions are open.
std::shared_ptr<ThreadEngine> ServedSockets::known_engine(const std::string& place) {
  std::shared_ptr<ThreadEngine> known;
  {
    const std::lock_guard held(mutex_);
    std::erase_if(kept_, [](const Kept& each) { return each.engine->is_lost(); });
    for (const Kept& each : kept_) {
      if (each.thread == client::this_thread() && each.place == place) known = each.engine;
    }
  }
  if (known == nullptr) return nullptr;
  const ThreadEngine::Section section(*known);
  return known->engine().connect() ? known : nullptr;
}

// In the place of this thread's one before, whose sockets keep it.
void ServedSockets::keep(const std::shared_ptr<ThreadEngine>& engine, const std::string& place) {
  const std::lock_guard held(mutex_);
  std::erase_if(kept_, [&](const Kept& each) { return each.thread == client::this_thread() && each.place == place; });
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
  kept_.push_back({place, client::this_thread(), engine});
}

// A line at once, so that those of several processes do not mix.
void ServedSockets::log(const std::string& line) const {
  if (log_ < 0) return;
  const std::string whole = std::to_string(::getpid()) + ": " + line + "\n";
  [[maybe_unused]] const ssize_t written = real().write(log_, whole.data(), whole.size());
}

}  // namespace egret::preload
