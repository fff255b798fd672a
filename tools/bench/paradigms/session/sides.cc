// How hosts come to a session over rdma_cm: one connection for each connecting host, which gives the token in its first frame.
#include <algorithm>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <ifaddrs.h>

#include "base/cpu.h"
#include "bench_paradigms/fabric/besides.h"
#include "bench_paradigms/fabric/verbs_fabric.h"
#include "bench_paradigms/session/hosts.h"
#include "bench_paradigms/session/token.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;
using bench_verbs::Greeting;

namespace {

constexpr double kGreetingPatienceS = 10;
constexpr int kTries = 50;  // --loop: the listening side may not listen yet
using Say = std::function<void(const std::string&)>;
using Lead = std::function<Expected<std::string>(Session&)>;

Greeting greeting() {
  Greeting own;
  own.role = Greeting::Role::kParadigms;
  return own;
}

Expected<bench::Address> address_of(const std::string& text) {
  return bench::parse_address(text.starts_with(':') ? "127.0.0.1" + text : text);
}

// A host's own device, once a control connection names it.
struct Device {
  Route route;
  Capabilities capabilities;
  HostInfo host;
};

Expected<Device> look_at(const rdma_cm_id* control) {
  auto route = find_route(control);
  if (!route) return route.status();
  auto capabilities = probe(route.value());
  if (!capabilities) return capabilities.status();
  const auto processors = static_cast<uint32_t>(base::allowed_cpus().size());
  return Device{route.value(), capabilities.value(), {bench_verbs::describe(control), processors}};
}

Surroundings surroundings_of(const Device& device, const std::atomic<bool>& stop) {
  Surroundings own;
  own.make_fabric = [route = device.route, is_backward = device.capabilities.has_backward_answers](
                        NodeId node, const Capabilities& all) {
    Capabilities here = all;
    here.has_backward_answers = is_backward;
    return make_verbs_fabric(route, node, here);
  };
  own.stop = &stop;
  return own;
}

// --- the listening side

struct Guest {
  Neighbour neighbour;
  Hello hello;
};

std::string name_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "?";
  const void* const where = address->sa_family == AF_INET
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                                : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  (void)inet_ntop(address->sa_family, where, text, sizeof text);
  return text;
}

bool is_loopback(const sockaddr* address) {
  const std::string name = name_of(address);
  return name.starts_with("127.") || name == "::1";
}

bool is_of_this_host(const sockaddr* address) {
  ifaddrs* all = nullptr;
  if (is_loopback(address) || getifaddrs(&all) != 0) return is_loopback(address);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    const sockaddr* const own = each->ifa_addr;
    const bool is_same_family = own != nullptr && own->sa_family == address->sa_family;
    if (is_same_family && name_of(own) == name_of(address)) return true;
  }
  return false;
}

// rdma_cm takes loopback for any address of any device: who listens on loopback refuses other hosts himself. Before their
// connection stands: they learn no more than where nobody listens.
bool may_come(rdma_cm_id* listener, rdma_cm_id* id) {
  return !is_loopback(rdma_get_local_addr(listener)) || is_of_this_host(rdma_get_peer_addr(id));
}

// Who does not give the token ends the session: it cannot be tried again and again.
Expected<Guest> welcome(VerbsChannel& opened, std::unique_ptr<Channel> channel, const std::string& token,
                        const std::atomic<bool>& stop) {
  if (Status done = opened.connection().accept(greeting(), 1); !done) return done;
  const std::string name = name_of(rdma_get_peer_addr(opened.connection().id()));
  Guest guest{Neighbour(std::move(channel)), {}};
  auto frame = wait_for(guest.neighbour, FrameType::kHello, kGreetingPatienceS, &stop);
  if (!frame) return Status::error(name + ": " + frame.message());
  auto hello = read_hello(frame.value().body);
  std::string why;
  if (!hello) {
    why = hello.message();
  } else if (!is_same_token(hello.value().token, token)) {
    why = "wrong token";
  } else if (hello.value().build != own_build()) {
    why = "another build of egret-bench";
  }
  if (!why.empty()) {
    (void)guest.neighbour.send(FrameType::kRefused, "refused by the listening side: " + why);
    return Status::error(name + " is refused: " + why);
  }
  guest.neighbour.trust();
  guest.hello = std::move(hello.value());
  return guest;
}

Expected<std::string> lead_hosts(std::vector<Guest> guests, const Device& own, const Lead& lead,
                                 const std::atomic<bool>& stop) {
  std::vector<Neighbour> others;
  std::vector<HostInfo> hosts = {own.host};
  Capabilities all = own.capabilities;
  for (Guest& guest : guests) {
    hosts.push_back(guest.hello.host);
    all = merge(all, guest.hello.capabilities);
    others.push_back(std::move(guest.neighbour));
  }
  auto leader = Leader::make(std::move(others), std::move(hosts), all, surroundings_of(own, stop));
  if (!leader) return leader.status();
  auto report = lead(*leader.value());
  if (!report) return report;
  if (Status ended = leader.value()->end(report.value()); !ended) return ended;
  return report;
}

Expected<std::string> listen_side(const bench::Address& address, const std::string& token, uint32_t hosts,
                                  const Lead& lead, const std::atomic<bool>& stop) {
  auto listener = bench_verbs::listen(address);
  if (!listener) return listener.status();
  std::vector<Guest> guests;
  Device own;
  while (guests.size() < hosts) {
    auto request = bench_verbs::next_request(listener.value().get(), stop);
    if (!request) return request.status();
    if (request.value().greeting.role != Greeting::Role::kParadigms ||
        !may_come(listener.value().get(), request.value().id.get())) {
      rdma_reject(request.value().id.get(), nullptr, 0);
      continue;
    }
    auto channel = VerbsChannel::open(std::move(request.value().id));
    if (!channel) return channel.status();
    VerbsChannel& opened = *channel.value();
    const rdma_cm_id* const id = opened.connection().id();
    auto guest = welcome(opened, std::move(channel.value()), token, stop);
    if (!guest) return guest.status();
    guests.push_back(std::move(guest.value()));
    if (guests.size() > 1) continue;
    auto device = look_at(id);
    if (!device) return device.status();
    own = std::move(device.value());
  }
  return lead_hosts(std::move(guests), own, lead, stop);
}

// --- the connecting side

Expected<std::string> connect_side(const bench::Address& address, const std::string& token, NodeWork& work,
                                   const std::atomic<bool>& stop) {
  auto id = bench_verbs::resolve(address);
  if (!id) return id.status();
  auto channel = VerbsChannel::open(std::move(id.value()));
  if (!channel) return channel.status();
  VerbsChannel& opened = *channel.value();
  if (Status done = opened.connection().connect(greeting()); !done) return done;
  if (opened.connection().answer().role != Greeting::Role::kParadigms) {
    return Status::error("what listens there is no egret-bench paradigms");
  }
  auto device = look_at(opened.connection().id());
  if (!device) return device.status();
  const Hello hello{token, own_build(), device.value().host, device.value().capabilities};
  Neighbour leader(std::move(channel.value()));
  if (Status sent = leader.send(FrameType::kHello, to_body(hello)); !sent) return sent;
  return Follower(std::move(leader), surroundings_of(device.value(), stop), work).run();
}

// Whoever of the connecting ends in vain ends the listening one, too.
Expected<std::string> loop_sides(const bench::Address& address, uint32_t hosts, NodeWork& work, const Lead& lead,
                                 const std::atomic<bool>& stop) {
  const std::string token = make_token();
  std::vector<Expected<std::string>> reports(hosts, Expected<std::string>(std::string()));
  std::atomic<bool> has_ended{false}, halt{false};
  std::vector<std::thread> connecting;
  connecting.reserve(hosts);
  for (auto& report : reports) {
    connecting.emplace_back([&] {
      for (int tries = 0; tries < kTries && !has_ended.load() && !stop.load(); ++tries) {
        report = connect_side(address, token, work, stop);
        if (report) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      halt.store(true);
    });
  }
  auto led = listen_side(address, token, hosts, lead, halt);
  const bool was_halted = halt.load();
  has_ended.store(true);
  for (auto& thread : connecting) thread.join();
  if (!led && !was_halted) return led;
  for (auto& report : reports) {
    if (!report) return report;
  }
  return led;
}

}  // namespace

Expected<std::string> run_sides(const Sides& sides, NodeWork& work, const Lead& lead, const Say& say,
                                const std::atomic<bool>& stop) {
  if (Status there = bench_verbs::check_device(); !there) return there;
  auto address = address_of(sides.listen + sides.connect + sides.loop);
  if (!address) return address.status();
  if (!sides.loop.empty()) return loop_sides(address.value(), sides.hosts, work, lead, stop);
  if (!sides.connect.empty()) return connect_side(address.value(), sides.token, work, stop);
  const std::string token = make_token();
  say("listening on " + address.value().to_string() +
      ": until this ends, whoever connects with the token can read and write the memory that is measured with");
  say("on the other side: --connect " + address.value().to_string() + " --token " + token);
  return listen_side(address.value(), token, sides.hosts, lead, stop);
}

}  // namespace egret::bench_paradigms
