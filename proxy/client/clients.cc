#include "proxy/client/clients.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <malloc.h>

#include "proxy/commands/observe.h"

namespace egret::proxy {

using events::Event;

namespace {
constexpr size_t kMostToRest = 128;  // at once: 3 µs each
constexpr uint64_t kGoOnLookingNs = 1'000'000;
constexpr uint64_t kMostBetweenLooksNs = 8'000'000'000;
constexpr std::chrono::seconds kReturnMemoryAfter{1};
constexpr size_t kWorthReturning = 32 << 20;
// Client timeouts are checked at most this often within the shortest of them, so a client may exceed its timeout by an
// eighth.
constexpr uint64_t kTimeoutChecks = 8;
constexpr uint64_t kMinTimeoutStepNs = 10'000'000;
constexpr uint64_t kMaxTimeoutStepNs = 1'000'000'000;
// A client that holds a large value and reads nothing, or half a command and does not send the rest, for this long is
// disconnected if others need the memory.
constexpr uint64_t kStalledNs = 5'000'000'000;
}  // namespace

Clients::Clients(WorkerContext& worker)
    : worker_(worker),
      resting_(
          worker.events, [this](ConnectionRecord& record) { wake(record).read_at_once(); }, [this] { put_to_rest(); }),
      return_memory_(Event::timer<&Clients::return_memory>(worker.events, *this)),
      timeouts_(Event::timer<&Clients::on_timeouts>(worker.events, *this)) {}

// --- to come, to rest, to go
// ------------------------------------------------------------------------------------------------------------

void Clients::take_in(NewClient client) {
  const int fd = client.tls ? client.tls->fd() : client.plain.get();
  const uint64_t active_ns = client.resume_state ? client.last_active_ns : worker_.pass_ns;
  ConnectionRecord& record = worker_.stats.connections.add(fd, active_ns);
  record.may_idle = client.may_idle;
  if (client.resume_state) record.resume_state = *client.resume_state;
  worker_.stats.curr_connections.add(1);
  worker_.stats.total_connections.add(1);
  add(std::move(client.plain), std::move(client.tls), record);
  tell_connected(worker_.proxy.admin, record);
}

Connection& Clients::add(base::UniqueFd plain, std::unique_ptr<ClientSocket> tls, ConnectionRecord& record) {
  connections_.push_back(slabs_.make<Connection>(worker_, std::move(plain), std::move(tls), record));
  Connection& connection = *connections_.back();
  connection.index = connections_.size() - 1;
  check_timeouts_at(connection.times_out_ns());
  if (!resting_.is_call_pending() || rest_look_ns_ > Connection::kRestAfterNs) look_again(true, false);
  return connection;
}

Connection& Clients::wake(ConnectionRecord& record) {
  worker_.begin_pass();
  worker_.stats.resting_connections.sub(1);
  return add(resting_.end(record), nullptr, record);
}

template <typename Is>
void Clients::wake_those(const Is& is) {
  std::vector<ConnectionRecord*> found;
  worker_.stats.connections.visit_all([&](ConnectionRecord& record) {
    if (record.is_resting && is(record)) found.push_back(&record);
  });
  for (ConnectionRecord* record : found) wake(*record);
}

// Wakes those that need a Connection for the change: their user's rights are to be renewed, or a new Connection would take its
// protocol, and whether it must authenticate, from the next configuration; a client keeps those that it connected with.
void Clients::prepare(const Config& next) {
  const Config& now = *worker_.config;
  if (&next == &now) return;  // members have changed
  const bool is_other = next.protocol != now.protocol || (next.credentials == nullptr) != (now.credentials == nullptr);
  wake_those([&](const ConnectionRecord& record) { return is_other || record.user != nullptr; });
}

// Looks at all connections, so that a request need not touch a timer. It puts at most kMostToRest to rest in one call, so that
// the worker's other clients do not wait for thousands.
void Clients::put_to_rest() {
  worker_.begin_pass();
  if (unlooked_ == 0) may_soon_ = may_later_ = false;
  size_t left = unlooked_ == 0 ? connections_.size() : std::min(unlooked_, connections_.size());
  for (size_t rested = 0; left > 0 && rested < kMostToRest; --left) {
    Connection& connection = *connections_[left - 1];
    const Connection::Rest when = connection.may_rest();
    if (when == Connection::Rest::kNow && connection.rest(resting_)) {
      worker_.stats.resting_connections.add(1);
      remove(connection);
      ++rested;
    } else {
      may_soon_ |= when == Connection::Rest::kSoon;
      may_later_ |= when == Connection::Rest::kNow || when == Connection::Rest::kLater;
    }
  }
  unlooked_ = left;
  if (left > 0) return resting_.call_after(kGoOnLookingNs);
  look_again(may_soon_, may_later_);
}

// Connections that wait for their client, such as for the rest of a command, are looked at less and less often. The timer is
// off when no connection can come to rest.
void Clients::look_again(bool may_soon, bool may_later) {
  if (!may_soon && !may_later) return;
  rest_look_ns_ = may_soon ? Connection::kRestAfterNs : std::min(2 * rest_look_ns_, kMostBetweenLooksNs);
  resting_.call_after(rest_look_ns_);
}

void Clients::remove(const Connection& connection) {
  const size_t index = connection.index;
  connections_[index].swap(connections_.back());
  connections_[index]->index = index;
  connections_.pop_back();
}

// Destroying a connection may add others, and itself, to the lists, since it releases memory that they wait for.
bool Clients::destroy_dead() {
  PassLists& lists = worker_.lists;
  std::vector<Connection*> dead;
  dead.swap(lists.dead);
  for (Connection* connection : dead) {
    remove(*connection);
    std::erase(lists.with_output, connection);
    std::erase(lists.resumable, connection);
  }
  if (!dead.empty() && !return_memory_.pending()) return_memory_.add(kReturnMemoryAfter);
  return !dead.empty();
}

// The allocator keeps the memory of many closed connections for new ones. Return it to the system a while later.
// Where a sanitizer's allocator takes the place of glibc's, glibc makes its heap in the first call of mallinfo2(), which is not
// safe in two threads at once. A static is initialised by one thread.
void Clients::return_memory() {
  [[maybe_unused]] static const size_t of_first_call = ::mallinfo2().arena;
  if (::mallinfo2().fordblks >= kWorthReturning) ::malloc_trim(0);
}

// --- the passes
// ------------------------------------------------------------------------------------------------------------

bool Clients::resume() {
  PassLists& lists = worker_.lists;
  std::vector<Connection*> now;
  now.swap(lists.resumable);
  const bool any = !now.empty();
  for (Connection* connection : now) {
    connection->listed_for_resume = false;
    connection->resume();
  }
  now.clear();
  if (lists.resumable.empty()) lists.resumable.swap(now);  // keep the allocated memory
  return any;
}

void Clients::send_answers() {
  // Sending may let a connection produce more output, which the next pass sends.
  PassLists& lists = worker_.lists;
  std::vector<Connection*> now;
  now.swap(lists.with_output);
  for (Connection* connection : now) {
    connection->listed_for_output = false;
    connection->send_output();
  }
  now.clear();
  if (lists.with_output.empty()) lists.with_output.swap(now);
}

void Clients::disconnect_stalled() {
  const auto is_long_ago = [&](uint64_t ns) { return ns != Connection::kNever && worker_.pass_ns - ns >= kStalledNs; };
  MemoryCounters& counters = worker_.stats.memory;
  if (worker_.memory.large.is_anybody_waiting()) {
    for (const auto& connection : connections_) {
      if (is_long_ago(connection->stalled_since_ns())) connection->disconnect_stalled(counters.stalled_readers);
    }
  }
  if (!worker_.memory.is_input_high()) return;
  for (const auto& connection : connections_) {
    if (is_long_ago(connection->half_a_command_since_ns())) connection->disconnect_stalled(counters.stalled_senders);
  }
}

void Clients::on_reload() {
  for (const auto& connection : connections_) connection->retry_for_memory();
  for (const auto& connection : connections_) connection->renew_rights();
  on_timeouts();  // the new timeouts may be shorter
}

void Clients::last_call() {
  wake_those([](const ConnectionRecord&) { return true; });
  // This may list a connection as dead; connections are destroyed only at the end of the pass.
  for (const auto& connection : connections_) connection->last_call();
}

void Clients::check_last_call(bool is_late) {
  for (const auto& connection : connections_) connection->check_last_call(is_late);
}

// --- clients that take too long
// ------------------------------------------------------------------------------------------

// Connections have no timers of their own, and requests do not touch a timer: all connections are checked now and then.
void Clients::check_timeouts_at(uint64_t ends_ns) {
  if (ends_ns >= timeouts_checked_ns_) return;
  timeouts_checked_ns_ = ends_ns;
  const uint64_t now_ns = worker_.clock.now_ns();
  const uint64_t wait_us = ends_ns > now_ns ? (ends_ns - now_ns) / 1000 + 1 : 1;
  timeouts_.add(std::chrono::microseconds(wait_us));
}

void Clients::on_timeouts() {
  worker_.begin_pass();
  const ClientTimeouts& timeouts = worker_.timeouts;
  uint64_t next_ns = timeouts.idle_ns != 0 ? time_out_resting() : Connection::kNever;
  for (const auto& connection : connections_) {
    const uint64_t ends_ns = connection->times_out_ns();
    if (ends_ns <= worker_.pass_ns) {
      connection->time_out();
    } else {
      next_ns = std::min(next_ns, ends_ns);
    }
  }
  // A connection that waits for an answer is not idle, but may be so afterwards.
  if (timeouts.idle_ns != 0 && !connections_.empty()) next_ns = std::min(next_ns, worker_.pass_ns + timeouts.idle_ns);
  const uint64_t step_ns = std::clamp(timeouts.handshake_ns / kTimeoutChecks, kMinTimeoutStepNs, kMaxTimeoutStepNs);
  timeouts_checked_ns_ = Connection::kNever;
  if (next_ns != Connection::kNever) check_timeouts_at(std::max(next_ns, worker_.pass_ns + step_ns));
}

// Wakes those that are idle for too long, which on_timeouts() then ends. Returns when the next one will be.
uint64_t Clients::time_out_resting() {
  uint64_t next_ns = Connection::kNever;
  wake_those([&](const ConnectionRecord& record) {
    if (record.may_idle) return false;
    const uint64_t ends_ns = record.last_active_ns.load(std::memory_order_relaxed) + worker_.timeouts.idle_ns;
    if (ends_ns > worker_.pass_ns) next_ns = std::min(next_ns, ends_ns);
    return ends_ns <= worker_.pass_ns;
  });
  return next_ns;
}

}  // namespace egret::proxy
