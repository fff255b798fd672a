#include "proxy/slots/slot_door.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "access/newcomers.h"
#include "pool/gutter/stand_in.h"
#include "proxy/log_events.h"
#include "proxy/slots/slot_rules.h"
#include "transport/address.h"

namespace egret::proxy {

using base::Status;
using events::Event;
using wire::FrameType;

namespace {
constexpr std::chrono::seconds kPatience{5};  // with clients that have said nothing; likewise until a refusal is read
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsAtOnce = 16;

// As many as the backend has partitions, as far as its sessions have shown; 0: there was none yet.
uint32_t lanes_of(const pool::MemberStats& member) {
  uint32_t lanes = 0;
  for (const auto& session : member.sessions) lanes = std::max(lanes, session->lane_count());
  return lanes;
}
}  // namespace

SlotDoor::SlotDoor(events::EventLoop& loop, ProxyState& proxy, Give give)
    : loop_(loop), proxy_(proxy), give_(std::move(give)), news_(loop, proxy.slot_listeners) {
  mail_ = Event::on_fd<&SlotDoor::on_mail>(loop, proxy.slot_mail.fd(), events::kRead | events::kPersist, *this);
  sweep_ = Event::timer<&SlotDoor::sweep>(loop, *this);
}

SlotDoor::~SlotDoor() = default;

// --- where clients come in

base::Expected<std::unique_ptr<SlotDoor::Place>> SlotDoor::open_place(const std::string& address,
                                                                      const Config& config) {
  auto listener = transport::listen("shm:" + address, {.allowed_uids = config.slots.uids,
                                                       .allowed_gids = config.slots.gids,
                                                       .allowed_by = "slots_uids and slots_gids",
                                                       .fabric = {}});
  if (!listener) return listener.status();
  listener.value()->set_doorkeeper(this);
  base::log(kListening, "listening on {}{}", base::field("address", "shm:" + address), " (slots)");
  return std::make_unique<Place>(Place{this, address, std::move(listener.value())});
}

// New addresses are opened before old ones are given up.
Status SlotDoor::listen(const Config& config, const std::vector<std::string>& twins) {
  std::vector<std::unique_ptr<Place>> fresh;
  std::vector<std::string> wanted;
  const auto is_at = [](const std::string& address) {
    return [&](const auto& place) { return place->address == address; };
  };
  const auto open = [&](const std::string& address) -> Status {
    if (std::ranges::find(wanted, address) != wanted.end()) return Status::ok();
    if (std::ranges::none_of(places_, is_at(address))) {
      auto place = open_place(address, config);
      if (!place) return place.status();
      fresh.push_back(std::move(place.value()));
    }
    wanted.push_back(address);
    return Status::ok();
  };
  for (const std::string& address : config.slots.addresses) {
    if (Status opened = open(address); !opened) return opened;
  }
  for (const std::string& twin : config.slots.has_twins ? twins : std::vector<std::string>()) {
    const Status opened = open(twin);
    static base::LogLimit limit;
    if (opened) continue;
    base::log_limited(limit, kNoSlots, "no slots at shm:{}: {}", base::field("address", twin),
                      base::field("why", opened.message()));
  }
  std::erase_if(places_, [&](const auto& place) { return std::ranges::find(wanted, place->address) == wanted.end(); });
  std::ranges::move(fresh, std::back_inserter(places_));
  for (const auto& place : places_) place->listener->allow(config.slots.uids, config.slots.gids);
  return Status::ok();
}

void SlotDoor::begin() {
  [[maybe_unused]] const Status watched = mail_.add();
  for (const auto& place : places_) begin_accepting(*place);
  on_pool();
}

void SlotDoor::stop() {
  places_.clear();
  newcomers_.clear();
  news_.disconnect_all();
}

void SlotDoor::begin_accepting(Place& place) {
  if (!place.acceptable.is_set()) {
    place.acceptable =
        Event::on_fd<&Place::on_acceptable>(loop_, place.listener->fd(), events::kRead | events::kPersist, place);
    place.again = Event::timer<&Place::on_again>(loop_, place);
  }
  if (!place.acceptable.add()) place.again.add(kAcceptPause);
}

void SlotDoor::reload() {
  for (const auto& place : places_) begin_accepting(*place);
  news_.disconnect_all();  // their rights may be others: they ask again
  on_pool();
}

void SlotDoor::on_acceptable(Place& place) {
  for (int i = 0; i < kAcceptsAtOnce && accept_one(place); ++i) {
  }
}

bool SlotDoor::lets_in(const std::string& peer_group) {
  const uint64_t now_ns = proxy_.clock->now_ns();
  const bool may = rate_.may_go_on(peer_group, now_ns);
  rate_.charge(peer_group, now_ns, 1);
  return may;
}

void SlotDoor::charge(const std::string& peer_group) {
  rate_.charge(peer_group, proxy_.clock->now_ns(), 1);
}

bool SlotDoor::accept_one(Place& place) {
  auto accepted = place.listener->accept();
  if (!accepted) {
    static base::LogLimit limit;
    base::log_limited(limit, kSlotsRefused, "a slot client was turned away: {}",
                      base::field("why", accepted.message()));
    if (!place.listener->needs_pause()) return true;
    place.acceptable.del();
    place.again.add(kAcceptPause);
    return false;
  }
  if (accepted.value() == nullptr) return false;
  auto newcomer = std::make_unique<Newcomer>();
  newcomer->door = this;
  newcomer->number = next_++;
  newcomer->endpoint = std::move(accepted.value());
  newcomer->readable = Event::on_fd<&Newcomer::on_readable>(loop_, newcomer->endpoint->control_fd(),
                                                            events::kRead | events::kPersist, *newcomer);
  if (!newcomer->readable.add()) return true;
  ledger_.arrive(newcomer->number, newcomer->endpoint->peer_group());
  newcomers_.emplace(newcomer->number, std::move(newcomer));
  limit_newcomers();
  if (!sweep_.pending()) sweep_.add(kPatience);
  return true;
}

void SlotDoor::limit_newcomers() {
  std::vector<access::Newcomer> waiting;
  for (const auto& [number, newcomer] : newcomers_) waiting.push_back({number, newcomer->endpoint->peer_group()});
  if (const auto one_too_many = access::connection_to_end(waiting)) forget(*one_too_many);
}

// Ends the connections that the last sweep saw, too.
void SlotDoor::sweep() {
  std::vector<uint64_t> late;
  for (const auto& [number, newcomer] : newcomers_) {
    if (std::exchange(newcomer->survived_sweep, true)) late.push_back(number);
  }
  for (const uint64_t number : late) forget(number);
  if (!newcomers_.empty()) sweep_.add(kPatience);
}

void SlotDoor::forget(uint64_t number) {
  newcomers_.erase(number);
  ledger_.forget(number);
  proxy_.slot_bytes.set(ledger_.bytes());
}

// --- what they want

void SlotDoor::on_readable(Newcomer& newcomer) {
  std::array<std::byte, wire::kMaxFrame> frame{};
  size_t length = 0;
  const uint64_t number = newcomer.number;
  if (!newcomer.endpoint->receive_frame(frame, length)) return forget(number);
  if (length == 0) return;
  if (newcomer.is_refused) return forget(number);
  on_frame(newcomer, std::span(frame).first(length));
}

void SlotDoor::on_frame(Newcomer& newcomer, std::span<const std::byte> frame) {
  FrameType type{};
  std::string error;
  if (!decode_prefix(frame, type, error)) return refuse(newcomer, error);
  if (type == FrameType::kHello) return on_hello(newcomer, frame);
  wire::Ask ask;
  if (type != FrameType::kAsk || !decode(frame, ask)) return refuse(newcomer, "expected a hello, or a question");
  const auto rules = slot_rules(*proxy_.config.get(), *newcomer.endpoint->user());
  if (!rules) return refuse(newcomer, rules.message());
  newcomer.readable.reset();
  if (const std::string why = news_.add(newcomer.endpoint, rules.value()->rights); !why.empty()) {
    return refuse(newcomer, why);
  }
  forget(newcomer.number);
}

void SlotDoor::on_hello(Newcomer& newcomer, std::span<const std::byte> frame) {
  wire::Hello hello;
  if (!decode(frame, hello)) return refuse(newcomer, "a malformed hello");
  auto session = admit(newcomer, hello);
  if (!session) return refuse(newcomer, session.message());
  const uint64_t number = newcomer.number;
  newcomer.readable.reset();
  session.value().endpoint = std::move(newcomer.endpoint);
  newcomers_.erase(number);
  give_(std::move(session.value()));
}

base::Expected<NewSlotSession> SlotDoor::admit(Newcomer& newcomer, const wire::Hello& hello) {
  const std::shared_ptr<const Config> config = proxy_.config.get();
  if ((hello.features & wire::kRelayed) == 0) {
    return Status::error("these are a proxy's slots: a client of them names a member of the pool");
  }
  if (const auto rules = slot_rules(*config, *newcomer.endpoint->user()); !rules) return rules.status();
  const std::shared_ptr<const pool::Membership> membership = proxy_.membership.get();
  const auto members = membership->members();
  const auto member =
      std::ranges::find_if(members, [&](const auto& entry) { return pool::tag_of(entry.member.name) == hello.member; });
  if (member == members.end()) return Status::error("no such member in the pool");
  const SlotOptions& slots = config->slots;
  const wire::RegionLayout layout{lanes_of(*member->stats), std::clamp(hello.window, wire::kMinWindow, slots.window),
                                  slot_size_within(slots.request_slot, hello.request_slot_size),
                                  slot_size_within(slots.response_slot, hello.response_slot_size)};
  if (!layout.is_valid()) return Status::error("no session with " + member->member.to_string() + " yet");
  NewSlotSession session{
      .number = newcomer.number, .endpoint = nullptr, .hello = hello, .member = *member, .layout = layout};
  const uint64_t bytes = layout.bytes();
  if (const std::string why = excess(newcomer, session, bytes); !why.empty()) return Status::error(why);
  ledger_.admit(newcomer.number, session.client());
  session.user = ledger_.take_memory(newcomer.number, bytes);
  ledger_.open(newcomer.number);
  proxy_.slot_bytes.set(ledger_.bytes());
  rate_.charge(newcomer.endpoint->peer_group(), proxy_.clock->now_ns(), access::HandshakeRate::cost_of_session(bytes));
  return session;
}

// Empty, or which limit one more session would break.
std::string SlotDoor::excess(const Newcomer& newcomer, const NewSlotSession& session, uint64_t bytes) const {
  const SlotOptions& slots = proxy_.config.get()->slots;
  const std::string& user = newcomer.endpoint->peer_group();
  if (ledger_.places_besides(session.client()) >= slots.most_sessions) {
    return "slots_sessions = " + std::to_string(slots.most_sessions) + ", and as many are open";
  }
  if (ledger_.bytes() + bytes > slots.memory) {
    return "slots_memory = " + std::to_string(slots.memory) + " bytes, and " + std::to_string(ledger_.bytes()) +
           " are taken";
  }
  const uint64_t share = slots.memory / 100 * slots.share;
  if (const uint64_t held = ledger_.bytes_of(user); held + bytes > share) {
    return "slots_share is " + std::to_string(share) + " bytes of slots_memory for one user, and sessions of " + user +
           " hold " + std::to_string(held);
  }
  return {};
}

void SlotDoor::refuse(Newcomer& newcomer, const std::string& why) {
  static base::LogLimit limit;
  base::log_limited(limit, kSlotsRefused, "a slot client ({}) was refused: {}",
                    base::field("peer", newcomer.endpoint->peer()), base::field("why", why));
  proxy_.slot_refusals.add();
  [[maybe_unused]] const Status sent = newcomer.endpoint->send_frame(encode(wire::Refusal{.reason = why}), false);
  newcomer.is_refused = true;
  if (!newcomer.readable.is_set()) forget(newcomer.number);
}

// Sessions that workers have ended.
void SlotDoor::on_mail() {
  for (const uint64_t number : proxy_.slot_mail.take()) ledger_.forget(number);
  proxy_.slot_bytes.set(ledger_.bytes());
}

}  // namespace egret::proxy
