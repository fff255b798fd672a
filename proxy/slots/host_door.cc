#include "proxy/slots/host_door.h"

#include <array>
#include <utility>

#include "pool/gutter/stand_in.h"
#include "transport/address.h"
#include "wire/handshake.h"

namespace egret::proxy {

using base::Status;
using events::Event;

namespace {
std::string place_of(const std::string& door, uint32_t worker) {
  return door + "/" + std::to_string(worker);
}
}  // namespace

// A backend that returns at another address is another one.
uint64_t host_tag(const pool::Member& backend) {
  return pool::tag_of(backend.name + " at " + backend.address);
}

uint32_t host_worker(const pool::Member& backend, uint32_t workers) {
  return static_cast<uint32_t>(pool::tag_of(backend.name) % workers);
}

bool is_handed_over(const Config& config, const pool::Member& backend, uint32_t worker) {
  if (!config.is_session_per_host || transport::transport_of(backend.address) == "shm") return false;
  return host_worker(backend, config.workers) != worker;
}

rpc::SessionOptions handed_over(rpc::SessionOptions options, const Config& config, const pool::Member& backend,
                                const std::string& door) {
  options.address = place_of(door, host_worker(backend, config.workers));
  options.relayed_to = host_tag(backend);
  options.secret = {};
  return options;
}

Status HostDoor::listen(const std::string& door, uint32_t worker) {
  auto listener = transport::listen(place_of(door, worker), {});
  if (!listener) return listener.status();
  listener_ = std::move(listener.value());
  acceptable_ = Event::on_fd<&HostDoor::on_acceptable>(loop_, listener_->fd(), events::kRead | events::kPersist, *this);
  return acceptable_.add();
}

// Without a pause where the system lacks something: the other workers come back after one.
void HostDoor::on_acceptable() {
  auto accepted = listener_->accept();
  if (!accepted || accepted.value() == nullptr || newcomers_.size() >= kMostNewcomers) return;
  auto newcomer = std::make_unique<Newcomer>();
  newcomer->door = this;
  newcomer->number = next_++;
  newcomer->endpoint = std::move(accepted.value());
  newcomer->readable = Event::on_fd<&Newcomer::on_readable>(loop_, newcomer->endpoint->control_fd(),
                                                            events::kRead | events::kPersist, *newcomer);
  if (newcomer->readable.add()) newcomers_.emplace(newcomer->number, std::move(newcomer));
}

void HostDoor::on_readable(Newcomer& newcomer) {
  std::array<std::byte, wire::kMaxFrame> bytes{};
  size_t length = 0;
  wire::FrameType type{};
  std::string error;
  NewSlotSession session;
  session.number = newcomer.number;
  const Status received = newcomer.endpoint->receive_frame(bytes, length);
  if (received && length == 0) return;
  const auto frame = std::span(bytes).first(length);
  const bool is_hello = received && decode_prefix(frame, type, error) && type == wire::FrameType::kHello &&
                        decode(frame, session.hello) && (session.hello.features & wire::kRelayed) != 0;
  newcomer.readable.reset();
  session.endpoint = std::move(newcomer.endpoint);
  newcomers_.erase(session.number);
  if (is_hello) take_(std::move(session));
}

}  // namespace egret::proxy
